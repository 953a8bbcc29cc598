"""A question becomes a cited answer with a badge, or an honest "I don't know"."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import structlog

from core.answering.answer import Answer
from core.answering.find import ENGINE, find_answer
from core.answering.help_desk import HelpDesk
from core.answering.model_answer import VERSION as MODEL_VERSION
from core.answering.model_answer import model_answer
from core.confidence.evidence import VERSION
from core.confidence.prediction import Evaluation, PredictionKind
from core.confidence.reference import Claim, Reference
from core.conversation import Question, Speaker, Turn
from core.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.knowledge.retriever import Retriever
from core.language_model import ModelRequest, Urgency
from core.messages import AnswerMessage
from core.ports import Clock, LanguageModel, Store
from handlers.estimate_confidence import estimate_confidence
from handlers.post_message import Poster
from handlers.record_prediction import record_prediction
from handlers.show_waiting import answer_intent, shown_waiting

HISTORY_TURNS = 8  # of the thread, the latest ones
MODEL_DEADLINE = 60.0  # seconds that the language model has for the whole answer; then the evidence engine gives it
JUDGED_BY = 8  # retrieved passages that a composed answer is judged by
WITHOUT_MODEL = "The language model gave no usable answer in time; the documents are quoted instead."

ANSWERED = "answer"  # what the message shows, once it is no sign of waiting any more

NO_HELP_DESK = HelpDesk()

log = structlog.get_logger()


def no_queue(_requester: str) -> int:
    """The place in the queue where nobody has to wait."""
    return 0


async def answer_question(
    question: Question,
    *,
    retriever: Retriever,
    store: Store,
    poster: Poster,
    clock: Clock,
    model: LanguageModel | None = None,
    judge: LanguageModel | None = None,
    help_desk: HelpDesk = NO_HELP_DESK,
    position: Callable[[str], int] = no_queue,
) -> None:
    """Answer in the place of the question, in the context of what was said there before.

    `position` is the place of a requester in the queue for the model, from 1; 0 if it does not wait.
    """
    async with shown_waiting(question, lambda: position(_requester(question)), poster=poster):
        answer = await prepare_answer(
            question, retriever=retriever, store=store, clock=clock, model=model, judge=judge, help_desk=help_desk
        )
    await poster.post_or_edit(answer_intent(question.id), question.place, AnswerMessage(answer), ANSWERED)
    async with store.transaction() as transaction:
        conversations = transaction.conversations
        await conversations.add(
            f"{question.id}:question", question.place, Turn(Speaker.PERSON, question.text), question.asked_at
        )
        await conversations.add(
            f"{question.id}:answer", question.place, Turn(Speaker.PLUMBLINE, _said(answer)), clock.now()
        )


async def prepare_answer(
    question: Question,
    *,
    retriever: Retriever,
    store: Store,
    clock: Clock,
    model: LanguageModel | None = None,
    judge: LanguageModel | None = None,
    help_desk: HelpDesk = NO_HELP_DESK,
) -> Answer:
    """The answer with its badge, not posted anywhere; its prediction is stored.

    The language model gives it, if there is one; should it fail, the evidence engine does, and the answer says so.
    With a `judge`, an answer that a model composed waits for its two-step estimate; without, the checks that it passed
    anyway are its measure.
    """
    async with store.transaction() as transaction:
        history = await transaction.conversations.history(question.place, HISTORY_TURNS)
    answer, evaluation = await _found(replace(question, history=question.history or history), retriever, model)
    answer = help_desk.completed(answer, question)
    if answer.abstained:
        return answer
    cited = tuple(dict.fromkeys(citation.document_id for citation in answer.citations))
    evaluation, version = await _judged(question, answer, evaluation, retriever, judge)
    prediction_id, badge = await record_prediction(
        PredictionKind.ANSWER,
        question.id,
        _said(answer),
        evaluation,
        engine=answer.engine,
        estimator_version=version,
        group=cited[0].partition("/")[0] if cited else "",
        references=cited,
        store=store,
        clock=clock,
    )
    return replace(answer, badge=badge, prediction_id=prediction_id)


async def _judged(
    question: Question, answer: Answer, measured: Evaluation, retriever: Retriever, judge: LanguageModel | None
) -> tuple[Evaluation, str]:
    if answer.engine == ENGINE:
        return measured, VERSION
    if judge is None:
        return measured, MODEL_VERSION
    found = await retriever.search(question.text, question.audience, JUDGED_BY)
    return await estimate_confidence(
        Claim(question.id, question.text, _said(answer), question.asked_at),
        [Reference(each.passage.document_id, each.passage.text) for each in found.passages],
        (measured, MODEL_VERSION),
        model=judge,
        urgency=Urgency.PERSON,
        requester=_requester(question),
    )


async def _found(question: Question, retriever: Retriever, model: LanguageModel | None) -> tuple[Answer, Evaluation]:
    if model is None:
        return await find_answer(question, retriever)
    request = ModelRequest((), urgency=Urgency.PERSON, requester=_requester(question), deadline=MODEL_DEADLINE)
    try:
        async with asyncio.timeout(MODEL_DEADLINE):
            return await model_answer(question, retriever, model, request)
    except (ModelUnavailable, InvalidReply, PromptTooLong, TimeoutError) as error:
        reason = str(error) or f"It took longer than {MODEL_DEADLINE:.0f} seconds."
        log.warning("answered without the language model", question=question.id, reason=reason)
    answer, evaluation = await find_answer(question, retriever)
    return replace(answer, note=WITHOUT_MODEL), evaluation


def _said(answer: Answer) -> str:
    return " ".join(sentence.text for sentence in answer.sentences)


def _requester(question: Question) -> str:
    return f"{question.place.platform}:{question.place.channel}"
