from __future__ import annotations

import asyncio

import pytest

from core.answering.find import ENGINE
from core.conversation import MessageReference, Place
from core.knowledge.retriever import Retriever
from core.language_model import ModelReply, ModelRequest
from core.messages import AnswerMessage, Message
from handlers.answer_of_either import WITHOUT_MODEL
from handlers.quote_meanwhile import READS_ON, quoted_meanwhile
from tests.fakes.answering_script import AnsweringScript, agreeing
from tests.fakes.language_model import ScriptedModel
from tests.fakes.messenger import RecordingMessenger, Trouble
from tests.fakes.store import InMemoryStore
from tests.unit.handlers.test_answer_question import COMPOSED, ROLLBACK, answered, composing, last, question, retriever

__all__ = ["retriever"]  # the fixture


class Slow(ScriptedModel):
    """Composes once it `may`."""

    def __init__(self) -> None:
        composer = agreeing(AnsweringScript(composing, question=ROLLBACK))
        super().__init__(composer.script, composer.odds)
        self.may = asyncio.Event()

    async def generate(self, request: ModelRequest) -> ModelReply:
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
    monkeypatch.setattr("handlers.quote_meanwhile.PATIENCE", 0.001)


async def test_the_documents_are_quoted_while_a_slow_model_composes(retriever: Retriever, store: InMemoryStore) -> None:
    chat, model = PostedMessenger(), Slow()
    answering = asyncio.create_task(answered(question(ROLLBACK), retriever, store, chat, model))
    await asyncio.wait_for(chat.has_posted.wait(), 5)
    quoted = last(chat).answer
    assert "slip rollback" in quoted.sentences[0].text
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
    monkeypatch.setattr("handlers.answer_question.QUOTED_DEADLINE", 0.1)
    await answered(question("What is the phone number of the zoo?"), retriever, store, chat, Slow())
    assert not chat.edited
    assert last(chat).answer.abstained


async def test_a_chat_that_takes_no_quotes_gets_the_answer(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handlers.answer_question.QUOTED_DEADLINE", 0.1)
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
