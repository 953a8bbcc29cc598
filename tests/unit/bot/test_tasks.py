from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
import structlog

from bot import tasks
from bot.tasks import FEEDBACK_EVENT, QUESTION, Dispatcher, TaskInbox
from core.conversation import PUBLIC, Audience, Person, Place, Platform, Question
from core.feedback import Feedback
from core.messages import Verdict
from core.ports import Task
from tests.fakes.store import InMemoryStore

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
PLACE = Place(Platform.SLACK, "C0ASK", "17.25", "T0MARI")
PERSON = Person(Platform.SLACK, "U1", "Ada")
ASKED = Question("slack:C0ASK:17.25", "naïve ☃?", PERSON, PLACE, Audience(frozenset({PUBLIC, "channel:help"})), NOW)
PRESSED = Feedback("slack:press:1", Verdict.HELPFUL, "p1", PERSON, PLACE, NOW)


class Engine:
    """Starts workflows that go on until they are let go."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.broken: set[str] = set()  # keys that cannot be started
        self.outcomes: dict[str, asyncio.Future[None]] = {}
        self._changed = asyncio.Condition()

    async def start(self, task: Task) -> Awaitable[object]:
        if task.key in self.broken:
            raise AttributeError(f"There is no workflow {task.workflow}.")
        async with self._changed:
            self.started.append(task.key)
            self.outcomes.setdefault(task.key, asyncio.get_running_loop().create_future())
            self._changed.notify_all()
        return self.outcomes[task.key]

    async def has_started(self, *keys: str, times: int = 1) -> None:
        async with asyncio.timeout(5), self._changed:
            await self._changed.wait_for(lambda: all(self.started.count(key) >= times for key in keys))


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


@pytest.fixture
def engine() -> Engine:
    return Engine()


@asynccontextmanager
async def serving(store: InMemoryStore, engine: Engine) -> AsyncIterator[Dispatcher]:
    dispatcher = Dispatcher(store, engine.start)
    task = asyncio.create_task(dispatcher.serve())
    yield dispatcher
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    for outcome in engine.outcomes.values():
        outcome.cancel()
    await dispatcher.drain()


async def add(store: InMemoryStore, *keys: str) -> None:
    async with store.transaction() as transaction:
        for key in keys:
            await transaction.tasks.add(Task(key, "workflow", key, {}))


# --- inbox -----------------------------------------------------------------------------------------------------------


async def test_a_question_is_recorded_as_it_was_asked_and_the_bell_is_rung(store: InMemoryStore) -> None:
    rung: list[None] = []
    await TaskInbox(store, lambda: rung.append(None)).ask(ASKED)
    (task,) = store.tasks.added.values()
    assert (task.key, task.workflow, task.subject) == (ASKED.id, "answer_question", ASKED.id)
    assert QUESTION.validate_python(task.payload) == ASKED
    assert len(rung) == 1


async def test_a_pressed_button_is_recorded_as_it_was_pressed(store: InMemoryStore) -> None:
    await TaskInbox(store, lambda: None).press(PRESSED)
    (task,) = store.tasks.added.values()
    assert (task.key, task.workflow, task.subject) == (PRESSED.id, "record_feedback", "p1")
    assert FEEDBACK_EVENT.validate_python(task.payload) == PRESSED


async def test_an_event_that_comes_twice_is_recorded_once(store: InMemoryStore) -> None:
    inbox = TaskInbox(store, lambda: None)
    for _ in range(2):
        await inbox.ask(ASKED)
        await inbox.press(PRESSED)
    assert len(store.tasks.added) == 2


# --- dispatcher ------------------------------------------------------------------------------------------------------


async def test_what_was_recorded_before_is_started_oldest_first(store: InMemoryStore, engine: Engine) -> None:
    await add(store, "c", "a", "b")
    async with serving(store, engine):
        await engine.has_started("a", "b", "c")
    assert engine.started == ["c", "a", "b"]
    assert store.tasks.started == {"a", "b", "c"}


async def test_a_new_task_is_started_when_the_bell_rings(
    store: InMemoryStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "POLLING_INTERVAL", 3600.0)
    async with serving(store, engine) as dispatcher:
        await add(store, "first")
        dispatcher.ring()
        await engine.has_started("first")
        await add(store, "second")
        dispatcher.ring()
        await engine.has_started("second")


async def test_a_task_that_another_process_recorded_is_found_without_a_bell(
    store: InMemoryStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "POLLING_INTERVAL", 0.01)
    async with serving(store, engine):
        await engine.has_started()
        await add(store, "quietly")
        await engine.has_started("quietly")


async def test_no_more_workflows_are_under_way_than_there_are_places(
    store: InMemoryStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "MAX_UNDER_WAY", 2)
    await add(store, "a", "b", "c")
    async with serving(store, engine):
        await engine.has_started("a", "b")
        await asyncio.sleep(0)
        assert engine.started == ["a", "b"]
        engine.outcomes["b"].set_result(None)
        await engine.has_started("c")


async def test_a_workflow_that_fails_gives_its_place_back_and_is_logged(
    store: InMemoryStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "MAX_UNDER_WAY", 1)
    await add(store, "a", "b")
    with structlog.testing.capture_logs() as events:
        async with serving(store, engine):
            await engine.has_started("a")
            engine.outcomes["a"].set_exception(ValueError("It is broken."))
            await engine.has_started("b")
    assert [event for event in events if event["log_level"] == "error"] == [
        {"event": "workflow failed", "workflow": "workflow", "key": "a", "error": "It is broken.", "log_level": "error"}
    ]


async def test_a_task_that_cannot_be_started_keeps_no_other_waiting_and_is_not_lost(
    store: InMemoryStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "POLLING_INTERVAL", 0.01)
    engine.broken = {"a"}
    await add(store, "a", "b")
    with structlog.testing.capture_logs() as events:
        async with serving(store, engine):
            await engine.has_started("b")
            assert store.tasks.started <= {"b"}
            engine.broken.clear()
            await engine.has_started("a")
    assert {event["event"] for event in events} == {"task cannot be started"}


async def test_a_database_that_is_down_for_a_while_is_waited_for(
    store: InMemoryStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "POLLING_INTERVAL", 0.01)
    await add(store, "a")
    store.outages = 3
    async with serving(store, engine):
        await engine.has_started("a")


async def test_a_task_whose_start_could_not_be_remembered_is_started_again(
    store: InMemoryStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine runs a workflow once, however often it is started."""
    monkeypatch.setattr(tasks, "POLLING_INTERVAL", 0.01)
    await add(store, "a", "b")
    start = engine.start

    async def start_and_break(task: Task) -> Awaitable[object]:
        if not engine.started:
            store.outages = 1
        return await start(task)

    monkeypatch.setattr(engine, "start", start_and_break)
    async with serving(store, engine):
        await engine.has_started("a", "b")
        await engine.has_started("a", times=2)


async def test_draining_waits_for_what_is_under_way(store: InMemoryStore, engine: Engine) -> None:
    await add(store, "a")
    async with serving(store, engine) as dispatcher:
        await engine.has_started("a")
        draining = asyncio.create_task(dispatcher.drain())
        await asyncio.sleep(0)
        assert not draining.done()
        engine.outcomes["a"].set_result(None)
        await draining
