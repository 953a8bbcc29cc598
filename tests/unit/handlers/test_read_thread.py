"""Called into the middle of somebody else's thread."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.answering.questions import standalone
from core.model.conversation import Audience, Person, Place, Platform, Question, Speaker, Turn
from core.model.document import Document
from handlers.questions.answer_question import MAX_CHARACTERS, in_context
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.fakes.threads import FakeThreads

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
THREAD = Place(Platform.SLACK, "C0ASK", "17.25")


class Thread:
    def __init__(self) -> None:
        self.threads, self.store = FakeThreads(), InMemoryStore()

    def say(self, *texts: str) -> None:
        for text in texts:
            at = NOW - timedelta(minutes=30) + timedelta(minutes=len(self.threads.said[THREAD]))
            self.threads.said[THREAD].append((at, Turn(Speaker.PERSON, text)))

    async def answered(self, text: str) -> None:
        async with self.store.transaction() as transaction:
            await transaction.conversations.put(f"{text}:q", THREAD, Turn(Speaker.PERSON, text), NOW)
            await transaction.conversations.put(f"{text}:a", THREAD, Turn(Speaker.PLUMBLINE, "So."), NOW)

    async def ask(self, text: str, place: Place = THREAD, *quotes: str) -> Question:
        quoted = tuple(Turn(Speaker.PERSON, quote) for quote in quotes)
        question = Question("q1", text, Person(place.platform, "U1"), place, Audience(), NOW, quoted)
        return await in_context(
            question, some_ports(threads={Platform.SLACK: self.threads}, store=self.store, redact=redact)
        )


def redact(document: Document) -> Document:
    return replace(document, text=document.text.replace("hunter2", "[secret]"))


@pytest.fixture
def thread() -> Thread:
    return Thread()


async def test_the_question_is_about_what_the_thread_began_with(thread: Thread) -> None:
    thread.say("p99 of the till is 4 s", "since the deploy at ten", "restarted it, no use")
    question = await thread.ask("how do we fix this?")
    assert [turn.text for turn in question.history] == [
        "p99 of the till is 4 s",
        "since the deploy at ten",
        "restarted it, no use",
    ]
    assert standalone(question.text, question.history).startswith("p99 of the till is 4 s how do we fix this?")


async def test_a_correction_in_somebody_else_s_thread_is_understood(thread: Thread) -> None:
    thread.say("how do I drain a runner in production?")
    question = await thread.ask("no, in staging")
    assert standalone(question.text, question.history).startswith(
        "how do I drain a runner in production? no, in staging"
    )


async def test_a_second_question_goes_on_with_the_first_and_with_what_began_the_thread(thread: Thread) -> None:
    thread.say("p99 of the till is 4 s", "same here", "how do we fix this?", "thanks, trying it")
    await thread.answered("how do we fix this?")
    question = await thread.ask("and in staging?")
    assert [turn.text for turn in question.history] == ["p99 of the till is 4 s", "how do we fix this?", "So."]
    rewritten = standalone(question.text, question.history)
    assert rewritten.startswith("p99 of the till is 4 s how do we fix this? and in staging?")


async def test_a_greeting_is_not_what_a_second_question_is_about(thread: Thread) -> None:
    thread.say("Good morning all", "p99 of the till is 4 s", "can you help?")
    await thread.answered("can you help?")
    question = await thread.ask("what should we do?")
    assert [turn.text for turn in question.history] == ["p99 of the till is 4 s", "can you help?", "So."]
    assert standalone(question.text, question.history).startswith("p99 of the till is 4 s can you help? what should")


async def test_a_thread_that_began_with_a_question_to_plumbline_begins_with_it_once(thread: Thread) -> None:
    thread.say("how do I drain a runner?")
    await thread.answered("how do I drain a runner?")
    question = await thread.ask("and in staging?")
    assert [turn.text for turn in question.history] == ["how do I drain a runner?", "So."]


async def test_secrets_stay_out_and_long_messages_are_cut(thread: Thread) -> None:
    thread.say("the password is hunter2", "x" * 10_000)
    first, second = (await thread.ask("how do we fix this?")).history
    assert first.text == "the password is [secret]"
    assert len(second.text) == MAX_CHARACTERS


async def test_a_secret_that_is_cut_off_is_none_that_is_kept(thread: Thread) -> None:
    thread.say(f"{'x' * (MAX_CHARACTERS - 3)}hunter2 and more")
    [said] = (await thread.ask("how do we fix this?")).history
    assert "hun" not in said.text


async def test_without_the_thread_the_question_stands_alone(thread: Thread) -> None:
    thread.say("p99 of the till is 4 s")
    thread.threads.down = True
    question = await thread.ask("how do I drain a runner in production?")
    assert question.history == ()
    assert not question.lacks_thread, "it says itself what it is about"


@pytest.mark.parametrize(
    "text", ["how do we fix this?", "and in staging?", "no, in production", "what about canaries?"]
)
async def test_a_follow_up_whose_thread_cannot_be_read_is_marked_as_lacking_it(thread: Thread, text: str) -> None:
    thread.say("p99 of the till is 4 s")
    thread.threads.down = True
    question = await thread.ask(text)
    assert question.history == ()
    assert question.lacks_thread


async def test_a_follow_up_that_quotes_or_goes_on_with_the_bot_lacks_nothing_if_its_thread_cannot_be_read(
    thread: Thread,
) -> None:
    thread.threads.down = True
    assert not (await thread.ask("how do we fix this?", THREAD, "p99 is 4 s")).lacks_thread
    await thread.answered("how do I drain a runner?")
    assert not (await thread.ask("and in staging?")).lacks_thread


@pytest.mark.parametrize("place", [replace(THREAD, thread=None), Place(Platform.CONSOLE, "help", "7")])
async def test_where_there_is_no_thread_to_read_the_question_is_as_it_was(thread: Thread, place: Place) -> None:
    thread.say("p99 of the till is 4 s")
    assert (await thread.ask("how do we fix this?", place)).history == ()


async def test_where_the_thread_cannot_be_read_its_quote_is_the_context(thread: Thread) -> None:
    question = await thread.ask("how do we fix this?", Place(Platform.TEAMS, "19:a", "7"), "p99 is 4 s, hunter2")
    assert [turn.text for turn in question.history] == ["p99 is 4 s, [secret]"]


async def test_what_the_question_quotes_comes_last_and_once(thread: Thread) -> None:
    thread.say("p99 of the till is 4 s", "since the deploy at ten", "restarted it, no use")
    question = await thread.ask("how do we fix this?", THREAD, "since the deploy at ten")
    assert [turn.text for turn in question.history] == [
        "p99 of the till is 4 s",
        "restarted it, no use",
        "since the deploy at ten",
    ]
