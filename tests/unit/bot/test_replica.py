"""A replica says that it lives, takes over from those that do not, and says what is wrong with the database."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from bot.work import engine
from bot.work.engine import Replica
from core.ports import Task
from tests.fakes.clock import FakeClock
from tests.fakes.store import InMemoryStore

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)


@dataclass
class Locks:
    """Of replicas: those that are alive hold theirs."""

    alive: set[str] = field(default_factory=set)

    async def keep(self, name: str) -> None:
        self.alive.add(name)

    async def is_lost(self, name: str) -> bool:
        return name not in self.alive


class StoreOfReplicas(InMemoryStore):
    """The store in memory, with the locks of its replicas."""

    def __init__(self) -> None:
        super().__init__()
        self.locks = Locks({"them"})


@dataclass
class Workflows:
    """What the engine holds: id → (replica, status, version)."""

    by_id: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    resumed: list[str] = field(default_factory=list)

    async def left_by(self, replicas: list[str]) -> list[Any]:
        return [
            SimpleNamespace(workflow_id=key, status=status, app_version=version)
            for key, (owner, status, version) in self.by_id.items()
            if owner in replicas and not (status == "ENQUEUED" and version == engine.VERSION)
        ]

    async def under_way(self, name: str) -> list[str]:
        return [key for key, (owner, status, _) in self.by_id.items() if owner == name and status == "PENDING"]

    async def resume(self, keys: list[str]) -> None:
        self.resumed += keys
        self.by_id |= {key: (self.by_id[key][0], "ENQUEUED", self.by_id[key][2]) for key in keys}

    async def forget(self, keys: list[str]) -> None:
        for key in keys:
            del self.by_id[key]


@pytest.fixture
def workflows(monkeypatch: pytest.MonkeyPatch) -> Workflows:
    workflows = Workflows()
    for name in ("left_by", "under_way", "resume", "forget"):
        monkeypatch.setattr(engine, name, getattr(workflows, name))
    return workflows


@pytest.fixture
def store() -> Any:
    return StoreOfReplicas()


def us(store: Any, clock: FakeClock | None = None, running: frozenset[str] = frozenset()) -> Replica:
    return Replica("us", store, clock or FakeClock(NOW), lambda: running)


async def claimed(store: Any, owner: str, *keys: str) -> None:
    async with store.transaction() as transaction:
        for key in keys:
            await transaction.tasks.add(Task(key, "answer", key, {}))
        await transaction.tasks.claim(owner, 100)
        await transaction.replicas.seen(owner, NOW)


async def test_the_work_of_a_dead_replica_goes_on_and_that_of_a_living_one_is_left_alone(
    store: Any, workflows: Workflows
) -> None:
    await claimed(store, "dead", "a")
    await claimed(store, "them", "b")
    workflows.by_id = {"a": ("dead", "PENDING", engine.VERSION), "b": ("them", "PENDING", engine.VERSION)}
    await us(store).check()
    assert workflows.resumed == ["a"]
    assert store.tasks.owners == {"b": "them"}


async def test_a_workflow_of_another_version_is_begun_anew_by_its_task(store: Any, workflows: Workflows) -> None:
    await claimed(store, "dead", "a")
    async with store.transaction() as transaction:
        await transaction.tasks.end(["a"])
    workflows.by_id = {"a": ("dead", "PENDING", "another")}
    await us(store).check()
    assert not workflows.by_id
    assert not store.tasks.ended
    assert not store.tasks.owners


async def test_nobody_is_thought_dead_because_a_clock_jumped(store: Any, workflows: Workflows) -> None:
    await claimed(store, "them", "b")
    for hours in (1, -1):
        await us(store, FakeClock(NOW + timedelta(hours=hours))).check()
    assert store.tasks.owners == {"b": "them"}


async def test_what_the_engine_could_not_write_is_resumed_when_it_is_seen_twice(
    store: Any, workflows: Workflows
) -> None:
    workflows.by_id = dict.fromkeys(("stuck", "running"), ("us", "PENDING", engine.VERSION))
    replica = us(store, running=frozenset({"running"}))
    await replica.check()
    assert not workflows.resumed
    await replica.check()
    assert workflows.resumed == ["stuck"]


async def test_a_database_in_trouble_is_told_until_it_is_fine(
    store: Any, workflows: Workflows, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    replica_ = us(store)

    class Over(Exception):
        """Ends the service."""

    async def pause(_seconds: float) -> None:
        told.append(replica_.trouble)
        if len(told) == 2:
            raise Over

    monkeypatch.setattr(engine.asyncio, "sleep", pause)
    store.outages = 1
    with pytest.raises(Over):
        await replica_.serve()
    assert told == ["The database is down.", ""]
