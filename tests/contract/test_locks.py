"""Locks among processes: one holder, let go when its session ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.store import store as locks
from adapters.store.database import open_database
from adapters.store.store import LocalLocks, PostgresLocks
from core.model.errors import StoreUnavailable
from tests.databases import new_postgres_database

external = pytest.mark.external


@pytest.fixture
async def engine(postgres: str) -> AsyncIterator[AsyncEngine]:
    async with new_postgres_database(postgres) as url:
        opened = open_database(url)
        yield opened
        await opened.dispose()


@pytest.fixture
async def processes(engine: AsyncEngine) -> AsyncIterator[tuple[PostgresLocks, PostgresLocks]]:
    """The locks of two; they are let go of at the end."""
    both = PostgresLocks(engine), PostgresLocks(engine)
    yield both
    for each in both:
        await each.close()


@external
async def test_two_processes_hold_a_lock_one_after_the_other(processes: tuple[PostgresLocks, PostgresLocks]) -> None:
    ours, theirs = processes
    order: list[str] = []
    async with ours.lock("message"):
        waiting = asyncio.create_task(hold(theirs, order))
        async with theirs.lock("another message"):
            order.append("elsewhere")
        order.append("ours")
    await waiting
    assert order == ["elsewhere", "ours", "theirs"]


async def hold(other: PostgresLocks, order: list[str]) -> None:
    async with other.lock("message"):
        order.append("theirs")


@external
async def test_whoever_goes_on_after_the_locks_were_closed_takes_none(
    processes: tuple[PostgresLocks, PostgresLocks], engine: AsyncEngine
) -> None:
    ours, theirs = processes
    await ours.keep("us")
    async with ours.lock("message"):
        await ours.close()
    with pytest.raises(StoreUnavailable):
        await ours.keep("us")
    await theirs.keep("us")


@external
async def test_a_process_is_lost_once_its_lock_was_free_for_a_while_whatever_happens_to_who_looks(
    engine: AsyncEngine, processes: tuple[PostgresLocks, PostgresLocks], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "NEW_SESSION_TIMEOUT", 0.2)
    ours, theirs = processes
    await ours.keep("us")
    await theirs.keep("them")
    await ours.close()
    assert not await theirs.is_lost("us")
    await end_sessions(engine)
    await asyncio.sleep(0.2)
    with pytest.raises(StoreUnavailable):
        await theirs.is_lost("us")
    assert await theirs.is_lost("us")
    again = PostgresLocks(engine)
    await again.keep("us")
    assert not await theirs.is_lost("us")
    await again.close()
    assert not await theirs.is_lost("us")


@external
async def test_a_process_lives_as_long_as_its_session_and_a_lost_session_is_opened_anew(
    engine: AsyncEngine, processes: tuple[PostgresLocks, PostgresLocks], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "NEW_SESSION_TIMEOUT", 0.0)
    ours, theirs = processes
    await ours.keep("us")
    assert not await theirs.is_lost("us")
    await end_sessions(engine)
    assert await theirs.is_lost("us")
    with pytest.raises(StoreUnavailable):
        await ours.keep("us")
    await ours.keep("us")
    assert not await theirs.is_lost("us")
    await ours.close()
    assert await theirs.is_lost("us")


async def end_sessions(engine: AsyncEngine) -> None:
    ended = "SELECT pg_terminate_backend(pid, 10000)"  # and waited for
    others = "FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
    async with engine.connect() as connection:
        await connection.execute(sa.text(f"{ended} {others}"))


class SlowSession:
    """A session that answers when it is told to, and is broken by whoever breaks a statement off."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.answers = asyncio.Event()
        self.is_broken = False
        self.is_gone = False

    async def connect(self) -> SlowSession:
        self._look()
        return self

    async def execution_options(self, **_options: object) -> SlowSession:
        return self

    async def scalar(self, _statement: object, _values: object) -> bool:
        assert not self.is_broken
        self.asked.set()
        try:
            await self.answers.wait()
        except asyncio.CancelledError:
            self.is_broken = True
            raise
        self._look()
        return True

    def _look(self) -> None:
        if self.is_gone:
            raise OSError("The server is gone.")

    async def invalidate(self) -> None:
        pass

    async def close(self) -> None:
        pass


async def test_whoever_gives_up_waiting_for_the_session_leaves_it_to_the_others() -> None:
    session = SlowSession()
    ours = PostgresLocks(cast("AsyncEngine", session))
    looking = asyncio.create_task(ours.is_lost("another"))
    await session.asked.wait()
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)
    session.answers.set()
    async with ours.lock("message"):
        assert not session.is_broken


async def test_while_the_database_is_gone_nobody_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "NEW_SESSION_TIMEOUT", 0.3)
    monkeypatch.setattr(locks, "LONGEST_LOOK", 0.1)
    session = SlowSession()
    session.answers.set()
    ours = PostgresLocks(cast("AsyncEngine", session))
    assert not await ours.is_lost("them")
    session.is_gone = True
    await asyncio.sleep(0.4)
    with pytest.raises(StoreUnavailable):
        await ours.is_lost("them")
    session.is_gone = False
    assert not await ours.is_lost("them"), "they had no time to open a session"
    await asyncio.sleep(0.1)
    await ours.is_lost("them")
    await asyncio.sleep(0.1)
    assert await ours.is_lost("them")


async def test_whoever_is_told_to_stop_while_the_database_goes_away_stops() -> None:
    session = SlowSession()
    waiting = asyncio.create_task(hold(PostgresLocks(cast("AsyncEngine", session)), []))
    await session.asked.wait()
    session.is_gone = True
    waiting.cancel()
    session.answers.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_one_process_at_a_time_works_on_a_sqlite_file(tmp_path: Path) -> None:
    ours, theirs = LocalLocks(str(tmp_path / "state")), LocalLocks(str(tmp_path / "state"))
    await ours.keep("us")
    await ours.keep("us")
    with pytest.raises(StoreUnavailable, match="Another process works on"):
        await theirs.keep("them")
    assert await ours.is_lost("whoever was there before")
    await ours.close()
    await theirs.keep("them")
    await theirs.close()
