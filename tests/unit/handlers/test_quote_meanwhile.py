from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from core.answering.find import ENGINE
from core.knowledge.retriever import Retriever
from core.model.conversation import MessageReference, Place, Question
from core.model.document import Document
from core.model.errors import Undeliverable
from core.model.language_model import ModelReply, ModelRequest
from core.model.messages import AnswerMessage, Message
from core.ports import LanguageModel
from handlers.knowledge.ingest_knowledge import ingest_knowledge
from handlers.questions.answer_of_either import WITHOUT_MODEL
from handlers.questions.quote_meanwhile import READS_ON, quoted_meanwhile
from tests.fakes.answering import (
    COMPOSED,
    ROLLBACK,
    Handbook,
    answered,
    composing,
    last,
    question,
    retriever,
)
from tests.fakes.answering_script import AnsweringScript, agreeing, prompt, task
from tests.fakes.language_model import ScriptedModel
from tests.fakes.messenger import RecordingMessenger, Trouble
from tests.fakes.passage_index import FakeEncoderStore, FakePassageIndex
from tests.fakes.store import InMemoryStore

__all__ = ["retriever"]  # the fixture


class Slow(ScriptedModel):
    """Goes on `at` a task, at once unless told, when it `may`."""

    def __init__(self, at: str = "") -> None:
        composer = agreeing(AnsweringScript(composing, question=ROLLBACK))
        super().__init__(composer.script, composer.odds)
        self.may = asyncio.Event()
        self._at = at

    async def generate(self, request: ModelRequest) -> ModelReply:
        if self._at in ("", task(request)):
            await self.may.wait()
        return await super().generate(request)


class PostedMessenger(RecordingMessenger):
    """Tells when it has posted."""

    def __init__(self) -> None:
        super().__init__()
        self.has_posted = asyncio.Event()

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        reference = await super().post(place, message, intent)
        self.has_posted.set()
        return reference


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handlers.questions.quote_meanwhile.PATIENCE", 0.001)


async def test_the_documents_are_quoted_while_a_slow_model_composes(retriever: Retriever, store: InMemoryStore) -> None:
    chat, model = PostedMessenger(), Slow()
    answering = asyncio.create_task(answered(question(ROLLBACK), retriever, store, chat, model))
    await asyncio.wait_for(chat.has_posted.wait(), 5)
    quoted = last(chat).answer
    assert "slip rollback" in quoted.text
    assert [source.document_id for source in quoted.citations] == ["handbook/canary"]
    assert (quoted.engine, quoted.note) == (ENGINE, READS_ON)
    assert (quoted.badge, quoted.prediction_id) == (None, None), "nobody judges what may still change"
    model.may.set()
    await answering
    (final,) = chat.standing.values()
    assert isinstance(final, AnswerMessage)
    assert [sentence.text for sentence in final.answer.sentences] == [COMPOSED]
    assert [each.entry.documents for each in store.audit.entries] == [("handbook/canary",)] * 2, "both were shown"
    assert len(store.predictions.by_id) == 1


async def test_where_the_documents_say_nothing_nothing_is_quoted(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handlers.questions.answer_of_either.MODEL_DEADLINE", 0.1)
    await answered(question("What is the phone number of the zoo?"), retriever, store, chat, Slow())
    assert not chat.edited
    assert last(chat).answer.abstained


async def test_a_chat_that_takes_no_quotes_gets_the_answer(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handlers.questions.answer_of_either.MODEL_DEADLINE", 0.1)
    chat.trouble.append(Trouble.DOWN)
    await answered(question(ROLLBACK), retriever, store, chat, Slow())
    assert last(chat).answer.note == WITHOUT_MODEL


async def test_whoever_gives_up_waiting_for_the_quotes_does_not_break_them_off() -> None:
    """As a model does whose time is over while they are on their way to the chat."""
    begun, may = asyncio.Event(), asyncio.Event()

    async def quote() -> bool:
        begun.set()
        await may.wait()
        return True

    async with quoted_meanwhile(quote) as meanwhile:
        await begun.wait()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(meanwhile.end(), 0.01)
        may.set()
        assert await meanwhile.end()


@asynccontextmanager
async def under_way(
    asked: Question, retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger, model: LanguageModel
) -> AsyncIterator[asyncio.Task[None]]:
    """A run while the model composes; in the end the process is stopped."""
    answering = asyncio.create_task(answered(asked, retriever, store, chat, model))
    try:
        yield answering
    finally:
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)


async def quoted(store: InMemoryStore) -> None:
    """Returns once the quotes were shown, and are remembered."""
    async with asyncio.timeout(10):
        while not store.conversations.turns:  # noqa: ASYNC110 -- nothing tells it
            await asyncio.sleep(0.01)


class Closed(Handbook):
    """The same documents, now for one channel."""

    async def documents(self) -> AsyncIterator[Document]:
        async for document in super().documents():
            yield replace(document, readers=frozenset({"channel:vault"}))


def standing(chat: RecordingMessenger) -> Message:
    (message,) = chat.standing.values()
    return message


async def test_what_is_asked_below_the_quotes_goes_on_from_them(retriever: Retriever, store: InMemoryStore) -> None:
    chat, below = RecordingMessenger(), RecordingMessenger()
    async with under_way(question(ROLLBACK, "q1"), retriever, store, chat, Slow()):
        await quoted(store)
        await answered(question("and how long does that take?", "q2"), retriever, store, below)
    assert [source.document_id for source in last(below).answer.citations] == ["handbook/canary"]


async def test_of_the_quotes_and_the_answer_only_the_answer_is_remembered(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    model = Slow()
    async with under_way(question(ROLLBACK), retriever, store, chat, model):
        await quoted(store)
    model.may.set()
    await answered(question(ROLLBACK), retriever, store, chat, model)
    assert [turn.text for turn in await store.conversations.history(question(ROLLBACK).place, 8)] == [
        ROLLBACK,
        COMPOSED,
    ]
    assert all(ROLLBACK not in prompt(request).partition(ROLLBACK)[2] for request in model.requests), "asked once"


class Picky(RecordingMessenger):
    """Takes no quotes."""

    def __init__(self) -> None:
        super().__init__()
        self.has_refused = asyncio.Event()

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        if isinstance(message, AnswerMessage) and message.answer.note == READS_ON:
            self.has_refused.set()
            raise Undeliverable("The chat does not take that.")
        return await super().post(place, message, intent)


async def test_a_chat_that_will_never_take_the_quotes_gets_the_answer_and_leaves_no_dead_letter(
    retriever: Retriever, store: InMemoryStore
) -> None:
    chat, model = Picky(), Slow()
    async with under_way(question(ROLLBACK), retriever, store, chat, model) as answering:
        await asyncio.wait_for(chat.has_refused.wait(), 10)
        model.may.set()
        await answering
    assert [sentence.text for sentence in last(chat).answer.sentences] == [COMPOSED]
    assert not store.dead_letters.by_intent


async def test_a_run_that_is_resumed_takes_back_no_quotes(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with under_way(question(ROLLBACK), retriever, store, chat, Slow()):
        await quoted(store)
    monkeypatch.setattr("handlers.questions.show_waiting.PATIENCE", 0.001)
    monkeypatch.setattr("handlers.questions.quote_meanwhile.PATIENCE", 60.0)
    async with under_way(question(ROLLBACK), retriever, store, chat, Slow()):
        await asyncio.sleep(0.3)
        assert last(chat).answer.note == READS_ON
    assert (len(chat.posted), chat.edited) == (1, [])


async def test_a_run_that_is_resumed_takes_back_no_answer(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await answered(question(ROLLBACK), retriever, store, chat)
    assert (shown := last(chat).answer).badge is not None
    monkeypatch.setattr("handlers.questions.show_waiting.PATIENCE", 0.001)
    async with under_way(question(ROLLBACK), retriever, store, chat, Slow()):
        await asyncio.sleep(0.3)
        assert standing(chat) == AnswerMessage(shown)


@pytest.mark.parametrize("revision", ["1773480650.000000", "2026-03-14T09:30:50.000Z"])
async def test_a_run_that_is_late_takes_back_no_answer_to_the_question_as_it_was_put_since(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger, revision: str
) -> None:
    """As where another process, which knows of no edit, goes on."""
    model, edited = Slow(), replace(question("When does the deployment freeze end?"), revision=revision)
    async with under_way(question(ROLLBACK), retriever, store, chat, model) as late:
        await quoted(store)
        for key in list(store.conversations.turns):
            await store.conversations.forget(key)  # as for every edit
        await answered(edited, retriever, store, chat)
        shown = standing(chat)
        assert isinstance(shown, AnswerMessage)
        assert "6 January" in repr(shown)
        model.may.set()
        await late
    assert standing(chat) == shown
    asked, said = await store.conversations.history(edited.place, 8)
    assert asked.text == edited.text
    assert "6 January" in said.text


async def test_where_nothing_is_quoted_nobody_waits_longer_for_a_model(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handlers.questions.answer_of_either.MODEL_DEADLINE", 0.1)
    zoo = question("What is the phone number of the zoo?")
    async with under_way(zoo, retriever, store, chat, Slow()) as answering:
        await asyncio.wait_for(answering, 5)
    monkeypatch.setattr("handlers.questions.answer_of_either.MODEL_DEADLINE", 1.0)
    model, store = Slow(), InMemoryStore()
    async with under_way(question(ROLLBACK, "q2"), retriever, store, chat, model) as answering:
        await quoted(store)
        await asyncio.sleep(1.0)
        assert not answering.done(), "it has longer where the documents are quoted"
        model.may.set()
        await answering


async def test_a_model_that_hangs_is_not_waited_for_again_because_the_chat_asks_to_wait_a_bit(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handlers.questions.answer_of_either.MODEL_DEADLINE", 0.4)
    monkeypatch.setattr("handlers.questions.answer_of_either.QUOTED_DEADLINE", 0.4)
    chat.retry_after = 0.0
    async with under_way(question(ROLLBACK), retriever, store, chat, Slow()) as answering:
        await quoted(store)
        chat.trouble.append(Trouble.DOWN)
        await answering
    shown = standing(chat)
    assert isinstance(shown, AnswerMessage)
    assert shown.answer.note == WITHOUT_MODEL


async def test_what_a_model_composed_of_documents_that_were_closed_meanwhile_is_not_shown(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    index, encoders = FakePassageIndex(), FakeEncoderStore()
    await ingest_knowledge([Handbook()], index, encoders, None)
    model = Slow(at="Composed")
    retriever = Retriever(index, encoders, None)
    async with under_way(question(ROLLBACK), retriever, store, chat, model) as answering:
        await quoted(store)
        await ingest_knowledge([Closed()], index, encoders, None)
        model.may.set()
        await answering
    assert "slip rollback" not in repr(standing(chat))
