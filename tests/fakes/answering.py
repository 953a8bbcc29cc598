"""A handbook, the model that composes answers from it, and what the chat received."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from core.answering.model_exam import FULL, Marks
from core.knowledge.retriever import Retriever
from core.model.conversation import PUBLIC, Audience, Person, Place, Platform, Question
from core.model.document import Document
from core.model.messages import AnswerMessage
from core.model_calls.metered_model import QuestionLimits
from core.ports import LanguageModel
from handlers.common.examine_model import ExaminedModel
from handlers.common.post_message import Poster
from handlers.knowledge.ingest_knowledge import ingest_knowledge
from handlers.questions.answer_question import answer_question, in_context
from tests.fakes.clock import FakeClock
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.passage_index import FakeEncoderStore, FakePassageIndex
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)


THREAD = Place(Platform.SLACK, "C0ASK", "17.25")


DOCUMENTS = {
    "canary": (
        "Rolling back a canary",
        "## By hand\nRun `slip rollback SERVICE` to roll back a canary; the traffic returns within 90 seconds.",
    ),
    "freeze": (
        "Deployment freeze",
        "## When\nThe deployment freeze begins on 15 December and ends on 6 January.",
    ),
    "shelf": ("Shelf index", "## Rebuild\nRebuild the shelf index with `shelf reindex --all`."),
    "stages": ("Stages", "## Curves\nThe curves of a canary are compared with those of its baseline."),
    "vault": ("Master keys", "## Where\nThe master key is kept in the heliotrope safe."),
}


class Handbook:
    """Five documents, of which the last is for one channel."""

    name = "handbook"

    async def documents(self) -> AsyncIterator[Document]:
        for key, (title, text) in DOCUMENTS.items():
            readers = frozenset({"channel:vault"} if key == "vault" else {PUBLIC})
            yield Document(f"handbook/{key}", "handbook", "handbook", title, text, readers=readers)


@pytest.fixture
async def retriever() -> Retriever:
    index, encoders = FakePassageIndex(), FakeEncoderStore()
    await ingest_knowledge([Handbook()], index, encoders, None)
    return Retriever(index, encoders, None)


def question(text: str, question_id: str = "q1", *readers: str) -> Question:
    audience = Audience(frozenset({PUBLIC, *readers}))
    return Question(question_id, text, Person(Platform.SLACK, "U1", "Ada"), THREAD, audience, NOW)


async def answered(
    asked: Question,
    retriever: Retriever,
    store: InMemoryStore,
    chat: RecordingMessenger,
    model: LanguageModel | None = None,
    marks: Marks = FULL,
    limits: QuestionLimits = QuestionLimits(),
) -> None:
    """Answer a question; a model has these marks of its exam."""
    poster = Poster(store, {Platform.SLACK: chat})
    examined = ExaminedModel(model, lambda: marks) if model is not None else None
    if examined is not None:
        await examined.recall()
    ports = some_ports(
        retriever=retriever, store=store, poster=poster, clock=FakeClock(), examined=examined, question=limits
    )
    await answer_question(await in_context(asked, ports), ports)


def last(chat: RecordingMessenger) -> AnswerMessage:
    place, message = chat.posted[-1]
    assert place == THREAD
    assert isinstance(message, AnswerMessage)
    return message


ROLLBACK = "How do I roll back a canary?"
