from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
import sqlalchemy as sa

from adapters.store.sqlite import Flush, FlushedEngine
from tests.databases import database, sqlite_url


@pytest.fixture
def flushes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for every time that a file is flushed."""
    done: list[int] = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (done.append(file), fsync(file))[1])
    return done


async def test_what_is_written_is_flushed_before_the_transaction_returns_and_what_is_read_is_not(
    tmp_path: Path, flushes: list[int]
) -> None:
    async with database(sqlite_url(tmp_path)) as engine:
        assert isinstance(engine, FlushedEngine)
        flushes.clear()
        async with engine.begin() as connection:
            await connection.execute(sa.text("SELECT count(*) FROM tasks"))
        assert not flushes
        async with engine.begin() as connection:
            await connection.execute(sa.text("INSERT INTO deliveries VALUES ('key', '2026-01-01 00:00:00')"))
        assert len(flushes) == 1


async def test_who_comes_during_a_flush_waits_for_the_next_one_together(tmp_path: Path, flushes: list[int]) -> None:
    log = tmp_path / "log"
    await asyncio.to_thread(log.write_bytes, b"x")
    flush = Flush(log)
    await asyncio.gather(*(flush() for _ in range(50)))
    assert 1 <= len(flushes) <= 2


async def test_who_is_waited_for_finds_one_transaction_of_the_background_before_him(tmp_path: Path) -> None:
    async with database(sqlite_url(tmp_path)) as engine:
        assert isinstance(engine, FlushedEngine)
        behind = engine.in_background()
        order: list[str] = []
        begun = asyncio.Event()

        async def work(on: FlushedEngine, name: str) -> None:
            async with on.begin() as connection:
                order.append(name)
                begun.set()
                for _ in range(3):
                    await connection.execute(sa.text("SELECT 1"))
                    await asyncio.sleep(0)

        background = [asyncio.create_task(work(behind, "background")) for _ in range(5)]
        await begun.wait()
        await asyncio.gather(work(engine, "waited for"), *background)
        assert order.index("waited for") <= 2
        assert len(order) == 6


async def test_a_log_that_is_gone_needs_no_flush_and_one_that_fails_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await Flush(tmp_path / "log")()
    await asyncio.to_thread((tmp_path / "log").write_bytes, b"x")

    def full(_file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        await Flush(tmp_path / "log")()
