"""A question becomes a cited answer with a badge, or an honest "I don't know"."""

from __future__ import annotations

from dataclasses import replace

from core.answering.answer import Answer
from core.answering.find import find_answer
from core.confidence.evidence import VERSION
from core.confidence.prediction import PredictionKind
from core.conversation import Question, Speaker, Turn
from core.knowledge.retriever import Retriever
from core.messages import AnswerMessage
from core.ports import Clock, Store
from handlers.post_message import Poster
from handlers.record_prediction import record_prediction

HISTORY_TURNS = 8  # of the thread, the latest ones


async def answer_question(
    question: Question, *, retriever: Retriever, store: Store, poster: Poster, clock: Clock
) -> None:
    """Answer in the place of the question, in the context of what was said there before."""
    answer = await prepare_answer(question, retriever=retriever, store=store, clock=clock)
    await poster.post_once(f"answer:{question.id}", question.place, AnswerMessage(answer))
    said = " ".join(sentence.text for sentence in answer.sentences)
    async with store.transaction() as transaction:
        conversations = transaction.conversations
        await conversations.add(
            f"{question.id}:question", question.place, Turn(Speaker.PERSON, question.text), question.asked_at
        )
        await conversations.add(f"{question.id}:answer", question.place, Turn(Speaker.PLUMBLINE, said), clock.now())


async def prepare_answer(question: Question, *, retriever: Retriever, store: Store, clock: Clock) -> Answer:
    """The answer with its badge, not posted anywhere; its prediction is stored."""
    async with store.transaction() as transaction:
        history = await transaction.conversations.history(question.place, HISTORY_TURNS)
    answer, evaluation = await find_answer(replace(question, history=history or question.history), retriever)
    if answer.abstained:
        return answer
    prediction_id, badge = await record_prediction(
        PredictionKind.ANSWER,
        question.id,
        " ".join(sentence.text for sentence in answer.sentences),
        evaluation,
        engine=answer.engine,
        estimator_version=VERSION,
        store=store,
        clock=clock,
    )
    return replace(answer, badge=badge, prediction_id=prediction_id)
