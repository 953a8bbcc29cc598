from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from core.model.errors import StoreUnavailable
from core.ports import Task
from handlers.common import stored_incident
from handlers.common.stored_incident import stop_key, unless_stopped
from tests.fakes.store import InMemoryStore


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_incident, "LOOK", 0.0)


async def test_a_press_ends_the_work() -> None:
    store = InMemoryStore()
    async with store.transaction() as transaction:
        await transaction.tasks.add(Task(stop_key("q1"), "record_feedback", "q1", {}))
    assert await unless_stopped(asyncio.Event().wait(), "q1", store) is None


async def test_an_outage_of_the_store_is_no_press() -> None:
    looks = asyncio.Semaphore(0)

    class DownStore(InMemoryStore):
        @asynccontextmanager
        async def transaction(self) -> AsyncGenerator[InMemoryStore]:
            looks.release()
            raise StoreUnavailable("The database does not answer.")
            yield

    async def work() -> str:
        for _ in range(3):
            await looks.acquire()
        return "written"

    assert await unless_stopped(work(), "q1", DownStore()) == "written"
