from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from core.model.conversation import Place, Platform, Speaker, Turn, turn_key
from core.model.errors import ChatUnavailable, Withdrawn
from core.model.messages import Notice
from handlers.common.post_message import AnswersUnderWay, Poster, answer_intent
from handlers.questions.run_command import retract_question
from tests.fakes.messenger import RecordingMessenger, Trouble
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore

THREAD = Place(Platform.SLACK, "C0ASK", "17.25")
ANSWER = Notice("The answer.")
NOW = datetime(2026, 3, 14, tzinfo=UTC)


@pytest.fixture
def poster(store: InMemoryStore, chat: RecordingMessenger) -> Poster:
    return Poster(store, {Platform.SLACK: chat})


async def begun(under_way: AnswersUnderWay) -> tuple[asyncio.Task[None], asyncio.Event]:
    """Work on q1 that goes on until it is stopped, and what tells that it was."""
    started, stopped = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    running = asyncio.create_task(under_way.run("q1", work()))
    await started.wait()
    return running, stopped


async def test_an_answer_that_stands_is_taken_away(
    chat: RecordingMessenger, store: InMemoryStore, poster: Poster
) -> None:
    await poster.post_once(answer_intent("q1"), THREAD, ANSWER)
    await retract_question("q1", THREAD, some_ports(under_way=AnswersUnderWay(), store=store, poster=poster))
    assert not chat.standing


async def test_an_answer_that_comes_later_is_not_posted(
    chat: RecordingMessenger, store: InMemoryStore, poster: Poster
) -> None:
    await retract_question("q1", THREAD, some_ports(under_way=AnswersUnderWay(), store=store, poster=poster))
    with pytest.raises(Withdrawn):
        await poster.post_once(answer_intent("q1"), THREAD, ANSWER)
    with pytest.raises(Withdrawn):
        await poster.post_or_edit(answer_intent("q1"), THREAD, ANSWER, "answer")
    assert not chat.posted


async def test_an_answer_that_was_on_its_way_is_taken_away_once_the_chat_lets_it(
    chat: RecordingMessenger, store: InMemoryStore, poster: Poster
) -> None:
    await poster.post_once(answer_intent("q1"), THREAD, ANSWER)
    chat.trouble.append(Trouble.DOWN)
    with pytest.raises(ChatUnavailable):
        await retract_question("q1", THREAD, some_ports(under_way=AnswersUnderWay(), store=store, poster=poster))
    with pytest.raises(Withdrawn):
        await poster.post_once(answer_intent("q1"), THREAD, ANSWER)
    assert not chat.standing


async def test_work_that_goes_on_is_stopped(store: InMemoryStore, poster: Poster) -> None:
    under_way = AnswersUnderWay()
    running, stopped = await begun(under_way)
    await retract_question("q1", THREAD, some_ports(under_way=under_way, store=store, poster=poster))
    with pytest.raises(Withdrawn):
        await running
    assert stopped.is_set()


async def test_other_questions_are_not_touched(chat: RecordingMessenger, store: InMemoryStore, poster: Poster) -> None:
    await poster.post_once(answer_intent("q2"), THREAD, ANSWER)
    await retract_question("q1", THREAD, some_ports(under_way=AnswersUnderWay(), store=store, poster=poster))
    assert list(chat.standing.values()) == [ANSWER]


async def test_what_the_work_raises_is_raised() -> None:
    async def work() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await AnswersUnderWay().run("q1", work())


async def test_whoever_waits_for_the_work_may_give_up_and_it_stops() -> None:
    under_way = AnswersUnderWay()
    running, stopped = await begun(under_way)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await stopped.wait()


async def test_of_two_runs_of_one_question_neither_ends_the_other() -> None:
    under_way, answered = AnswersUnderWay(), list[str]()

    async def work(run: str) -> None:
        await asyncio.sleep(0)
        answered.append(run)

    await asyncio.gather(under_way.run("q1", work("first")), under_way.run("q1", work("second")))
    assert answered == ["first", "second"]


async def test_what_was_said_is_forgotten(store: InMemoryStore, poster: Poster) -> None:
    async with store.transaction() as transaction:
        for speaker in Speaker:
            await transaction.conversations.put(turn_key("q1", speaker), THREAD, Turn(speaker, "secret"), NOW)
            await transaction.conversations.put(turn_key("q2", speaker), THREAD, Turn(speaker, "kept"), NOW)
    await retract_question("q1", THREAD, some_ports(under_way=AnswersUnderWay(), store=store, poster=poster))
    async with store.transaction() as transaction:
        assert [turn.text for turn in await transaction.conversations.history(THREAD, 10)] == ["kept", "kept"]


async def test_who_stops_work_that_is_stopped_already_waits_for_its_end() -> None:
    """As of a question that is edited twice while something is on its way to the chat."""
    under_way, may, ended = AnswersUnderWay(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await may.wait()
            ended.set()

    running = asyncio.create_task(under_way.run("q1", work()))
    await asyncio.sleep(0)  # it begins
    stops = list[asyncio.Task[None]]()
    for _ in range(2):
        stops.append(asyncio.create_task(under_way.stop("q1")))
        await asyncio.wait(stops, timeout=0.01)
    assert not any(stop.done() for stop in stops)
    may.set()
    await asyncio.gather(*stops, running, return_exceptions=True)
    assert ended.is_set()
