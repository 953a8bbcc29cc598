"""A question becomes a cited answer with a badge, or an honest "I don't know"."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import structlog

from core.answering.answer import Answer
from core.answering.find import ENGINE, find_answer
from core.answering.help_desk import HelpDesk
from core.answering.model_answer import VERSION as MODEL_VERSION
from core.answering.model_answer import model_answer
from core.confidence.evidence import VERSION
from core.confidence.prediction import Evaluation, PredictionKind
from core.conversation import Question, Speaker, Turn
from core.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.knowledge.retriever import Retriever
from core.language_model import ModelRequest, Urgency
from core.messages import AnswerMessage
from core.ports import Clock, LanguageModel, Store
from handlers.post_message import Poster
from handlers.record_prediction import record_prediction

HISTORY_TURNS = 8  # of the thread, the latest ones
MODEL_DEADLINE = 60.0  # seconds that the language model has for the whole answer; then the evidence engine gives it
WITHOUT_MODEL = "The language model gave no usable answer in time; the documents are quoted instead."

NO_HELP_DESK = HelpDesk()

log = structlog.get_logger()


async def answer_question(
    question: Question,
    *,
    retriever: Retriever,
    store: Store,
    poster: Poster,
    clock: Clock,
    model: LanguageModel | None = None,
    help_desk: HelpDesk = NO_HELP_DESK,
) -> None:
    """Answer in the place of the question, in the context of what was said there before."""
    answer = await prepare_answer(
        question, retriever=retriever, store=store, clock=clock, model=model, help_desk=help_desk
    )
    await poster.post_once(f"answer:{question.id}", question.place, AnswerMessage(answer))
    said = " ".join(sentence.text for sentence in answer.sentences)
    async with store.transaction() as transaction:
        conversations = transaction.conversations
        await conversations.add(
            f"{question.id}:question", question.place, Turn(Speaker.PERSON, question.text), question.asked_at
        )
        await conversations.add(f"{question.id}:answer", question.place, Turn(Speaker.PLUMBLINE, said), clock.now())


async def prepare_answer(
    question: Question,
    *,
    retriever: Retriever,
    store: Store,
    clock: Clock,
    model: LanguageModel | None = None,
    help_desk: HelpDesk = NO_HELP_DESK,
) -> Answer:
    """The answer with its badge, not posted anywhere; its prediction is stored.

    The language model gives it, if there is one; should it fail, the evidence engine does, and the answer says so.
    """
    async with store.transaction() as transaction:
        history = await transaction.conversations.history(question.place, HISTORY_TURNS)
    answer, evaluation = await _found(replace(question, history=question.history or history), retriever, model)
    answer = help_desk.completed(answer, question)
    if answer.abstained:
        return answer
    prediction_id, badge = await record_prediction(
        PredictionKind.ANSWER,
        question.id,
        " ".join(sentence.text for sentence in answer.sentences),
        evaluation,
        engine=answer.engine,
        estimator_version=VERSION if answer.engine == ENGINE else MODEL_VERSION,
        store=store,
        clock=clock,
    )
    return replace(answer, badge=badge, prediction_id=prediction_id)


async def _found(question: Question, retriever: Retriever, model: LanguageModel | None) -> tuple[Answer, Evaluation]:
    if model is None:
        return await find_answer(question, retriever)
    requester = f"{question.place.platform}:{question.place.channel}"
    request = ModelRequest((), urgency=Urgency.PERSON, requester=requester, deadline=MODEL_DEADLINE)
    try:
        async with asyncio.timeout(MODEL_DEADLINE):
            return await model_answer(question, retriever, model, request)
    except (ModelUnavailable, InvalidReply, PromptTooLong, TimeoutError) as error:
        reason = str(error) or f"It took longer than {MODEL_DEADLINE:.0f} seconds."
        log.warning("answered without the language model", question=question.id, reason=reason)
    answer, evaluation = await find_answer(question, retriever)
    return replace(answer, note=WITHOUT_MODEL), evaluation
