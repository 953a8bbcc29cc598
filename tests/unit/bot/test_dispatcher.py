from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
import structlog

from bot.work import inbox as dispatching
from bot.work.inbox import Dispatcher
from core.ports import Task
from tests.fakes.store import InMemoryStore


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
    dispatcher = Dispatcher(store, "us", engine.start)
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


async def over(dispatcher: Dispatcher, *keys: str) -> None:
    """Until these tasks are not under way any more."""
    async with asyncio.timeout(5):
        await asyncio.gather(*(running for key, running in dispatcher._under_way.items() if key in keys))


async def test_what_was_recorded_before_is_started_oldest_first(store: InMemoryStore, engine: Engine) -> None:
    await add(store, "c", "a", "b")
    async with serving(store, engine):
        await engine.has_started("a", "b", "c")
    assert engine.started == ["c", "a", "b"]
    assert store.tasks.owners == {"a": "us", "b": "us", "c": "us"}


async def test_a_new_task_is_started_when_the_bell_rings(
    store: InMemoryStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatching, "POLLING_INTERVAL", 3600.0)
    async with serving(store, engine) as dispatcher:
        await add(store, "first")
        dispatcher.notify()
        await engine.has_started("first")
        await add(store, "second")
        dispatcher.notify()
        await engine.has_started("second")


async def test_a_task_that_another_process_recorded_is_found_without_a_bell(
    store: InMemoryStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatching, "POLLING_INTERVAL", 0.01)
    async with serving(store, engine):
        await engine.has_started()
        await add(store, "quietly")
        await engine.has_started("quietly")


async def test_no_more_workflows_are_under_way_than_there_are_places(
    store: InMemoryStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatching, "MAX_UNDER_WAY", 2)
    await add(store, "a", "b", "c")
    async with serving(store, engine):
        await engine.has_started("a", "b")
        await asyncio.sleep(0)
        assert engine.started == ["a", "b"]
        engine.outcomes["b"].set_result(None)
        await engine.has_started("c")


async def test_one_persons_flood_leaves_places_to_others_and_goes_on_as_it_is_done(
    store: InMemoryStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatching, "MAX_OF_ONE", 2)
    monkeypatch.setattr(dispatching, "CLAIMED_BATCH", 2)
    monkeypatch.setattr(dispatching, "POLLING_INTERVAL", 3600.0)
    async with store.transaction() as transaction:
        for key, person in (("a", "U1"), ("b", "U1"), ("c", "U1"), ("d", "U1"), ("other", "U2")):
            await transaction.tasks.add(Task(key, "answer", key, {"asker": {"id": person}}))
    async with serving(store, engine) as dispatcher:
        await engine.has_started("a", "b", "other")
        assert engine.started == ["a", "b", "other"]
        engine.outcomes["a"].set_result(None)
        await engine.has_started("c")
        for key in ("b", "c", "other"):
            engine.outcomes[key].set_result(None)
        await engine.has_started("d")
        engine.outcomes["d"].set_result(None)
        await over(dispatcher, "d")
        assert not dispatcher._people


async def test_a_workflow_that_fails_gives_its_place_back_and_is_logged(
    store: InMemoryStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatching, "MAX_UNDER_WAY", 1)
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
    monkeypatch.setattr(dispatching, "POLLING_INTERVAL", 0.01)
    engine.broken = {"a"}
    await add(store, "a", "b")
    with structlog.testing.capture_logs() as events:
        async with serving(store, engine):
            await engine.has_started("b")
            engine.broken.clear()
            await engine.has_started("a")
    assert {event["event"] for event in events} == {"task cannot be started"}


async def test_a_database_that_is_down_for_a_while_is_waited_for(
    store: InMemoryStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatching, "POLLING_INTERVAL", 0.01)
    await add(store, "a")
    store.outages = 3
    async with serving(store, engine):
        await engine.has_started("a")


async def test_a_mistake_in_one_claim_does_not_end_the_others(
    store: InMemoryStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatching, "POLLING_INTERVAL", 0.01)
    await add(store, "a")
    transaction, mistakes = InMemoryStore.transaction, iter([TypeError("This task cannot be read.")])

    def mistaken_once(self: InMemoryStore) -> AbstractAsyncContextManager[InMemoryStore]:
        if mistake := next(mistakes, None):
            raise mistake
        return transaction(self)

    monkeypatch.setattr(InMemoryStore, "transaction", mistaken_once)
    with structlog.testing.capture_logs() as events:
        async with serving(store, engine):
            await engine.has_started("a")
    assert {event["event"] for event in events} == {"tasks cannot be claimed"}


async def test_a_claim_that_was_committed_and_not_heard_of_is_let_go_again(
    store: InMemoryStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatching, "POLLING_INTERVAL", 0.01)
    await add(store, "a", "b")
    async with serving(store, engine) as dispatcher:
        await engine.has_started("a", "b")
        await add(store, "c")
        await store.tasks.claim("us", 1)
        store.outages = 1
        dispatcher.notify()
        await engine.has_started("c")
    assert engine.started == ["a", "b", "c"]


async def test_a_task_ends_when_its_workflow_has(store: InMemoryStore, engine: Engine) -> None:
    await add(store, "a", "b", "c")
    async with serving(store, engine) as dispatcher:
        await engine.has_started("a", "b", "c")
        assert not store.tasks.ended
        engine.outcomes["a"].set_result(None)
        engine.outcomes["b"].set_exception(ValueError("It is broken."))
        await over(dispatcher, "a", "b")
        await dispatcher._claimed(0)
        assert store.tasks.ended == {"a", "b"}
        assert store.tasks.owners == {"c": "us"}


async def test_an_end_that_cannot_be_written_is_written_later(store: InMemoryStore, engine: Engine) -> None:
    await add(store, "a")
    async with serving(store, engine) as dispatcher:
        await engine.has_started("a")
        engine.outcomes["a"].set_result(None)
        await over(dispatcher, "a")
        store.outages = 1
        await dispatcher._claimed(0)
        assert not store.tasks.ended
        await dispatcher._claimed(0)
        assert store.tasks.ended == {"a"}


async def test_draining_waits_for_what_is_under_way(store: InMemoryStore, engine: Engine) -> None:
    await add(store, "a")
    async with serving(store, engine) as dispatcher:
        await engine.has_started("a")
        draining = asyncio.create_task(dispatcher.drain())
        await asyncio.sleep(0)
        assert not draining.done()
        engine.outcomes["a"].set_result(None)
        await draining
