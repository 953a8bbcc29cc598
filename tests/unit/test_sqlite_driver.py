from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.store import sqlite
from adapters.store.database import open_database
from adapters.store.sqlite import FIRST, Driver

MANY = 2 * FIRST + 1
INSERT = sa.text("INSERT INTO numbers VALUES (:number)")
READ = sa.text("SELECT number FROM numbers ORDER BY number")


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[AsyncEngine]:
    """A database of one table, with more numbers than a statement brings along."""
    engine = open_database(f"sqlite:///{tmp_path / 'numbers.sqlite'}")
    async with engine.begin() as connection:
        await connection.execute(sa.text("CREATE TABLE numbers (number INTEGER PRIMARY KEY)"))
        await connection.execute(INSERT, [{"number": number} for number in range(MANY)])
    yield engine
    await engine.dispose()


@pytest.mark.parametrize("count", [0, 1, FIRST - 1, FIRST, FIRST + 1, 2 * FIRST, MANY])
async def test_a_result_is_read_whole_however_long_it_is(engine: AsyncEngine, count: int) -> None:
    limited = sa.text("SELECT number FROM numbers ORDER BY number LIMIT :count")
    async with engine.begin() as connection:
        assert list((await connection.execute(limited, {"count": count})).scalars()) == list(range(count))
        streamed = await connection.stream(limited, {"count": count})
        assert [row.number async for row in streamed] == list(range(count))


async def test_a_result_that_is_not_read_to_its_end_leaves_the_connection_usable(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        assert (await connection.execute(READ)).scalar() == 0
        async with connection.stream(READ) as streamed:
            assert (await streamed.first()) == (0,)
        deleted = await connection.execute(sa.text("DELETE FROM numbers RETURNING number"))
        assert len(deleted.all()) == MANY


async def test_a_transaction_keeps_other_writers_out_from_its_first_statement_on(
    engine: AsyncEngine, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "numbers.sqlite", timeout=0)) as other:
        async with engine.begin() as connection:
            other.execute("BEGIN IMMEDIATE")
            other.rollback()
            await connection.execute(READ)
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")
        other.execute("BEGIN IMMEDIATE")
        other.rollback()


async def test_who_finds_another_writer_is_told_by_his_first_statement_and_can_try_again(
    engine: AsyncEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT", 1)
    with closing(sqlite3.connect(tmp_path / "numbers.sqlite")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OperationalError, match="locked"):
            async with engine.begin() as connection:
                await connection.execute(INSERT, [{"number": MANY}, {"number": MANY + 1}])
    async with engine.begin() as connection:
        await connection.execute(INSERT, {"number": MANY})
        assert len((await connection.execute(READ)).all()) == MANY + 1


async def test_who_finds_another_writer_waits_for_him_and_holds_up_nobody_else(
    engine: AsyncEngine, tmp_path: Path
) -> None:
    async def write() -> None:
        async with engine.begin() as connection:
            await connection.execute(INSERT, {"number": MANY})

    with closing(sqlite3.connect(tmp_path / "numbers.sqlite")) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(write())
        for _ in range(10):
            await asyncio.sleep(0.01)  # while the loop was held up nothing here would end before the other writer did
        assert not waiting.done()
        other.rollback()
    await waiting


async def test_what_was_slow_once_is_left_to_the_thread_from_then_on(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def threads() -> list[int]:
        async with engine.begin() as connection:
            driver = (await connection.get_raw_connection()).driver_connection
            assert driver is not None
            await driver.create_function("thread", 0, threading.get_ident)
            named = sa.text("SELECT thread()")
            return [(await connection.execute(named)).scalar_one() for _ in range(2)]

    here = threading.get_ident()
    assert await threads() == [here, here]
    monkeypatch.setattr(sqlite, "SLOW", -1.0)
    first, second = await threads()
    assert first == here
    assert second != here
    async with engine.connect() as connection:
        await connection.invalidate()
    assert here not in await threads(), "another connection does not find out anew"


async def test_a_long_transaction_lets_the_loop_do_what_else_there_is(engine: AsyncEngine) -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(others())
    async with engine.begin() as connection:
        await connection.execute(READ)
        before, began = turns, time.thread_time()
        while time.thread_time() - began < 20 * sqlite.TURN:
            await connection.execute(sa.text("SELECT 1"))
        assert turns - before >= 10
    counting.cancel()


async def test_a_statement_that_was_given_up_keeps_nobody_out_though_its_error_is_kept(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT", 1_000)
    is_read, goes_on = threading.Event(), threading.Event()

    def wait(_number: int) -> None:
        is_read.set()
        goes_on.wait()

    async def read() -> None:
        async with engine.begin() as connection:
            await connection.execute(INSERT, {"number": MANY})
            driver: Any = (await connection.get_raw_connection()).driver_connection
            await driver.create_function("wait", 1, wait)
            driver._slow.add("SELECT wait(number) FROM numbers")  # goes to the thread
            await connection.execute(sa.text("SELECT wait(number) FROM numbers"))

    reading = asyncio.create_task(read())
    await asyncio.to_thread(is_read.wait)
    reading.cancel()
    await asyncio.sleep(0)
    goes_on.set()
    (kept,) = await asyncio.gather(reading, return_exceptions=True)
    async with engine.begin() as connection:
        assert len((await connection.execute(READ)).all()) == MANY
    assert isinstance(kept, asyncio.CancelledError)


async def test_a_connection_is_closed_though_it_was_given_up_before(tmp_path: Path) -> None:
    driver = await Driver(str(tmp_path / "other.sqlite"), set())
    closing_down = asyncio.create_task(driver.close())
    await asyncio.sleep(0)
    given_up = driver.stop()
    assert given_up is not None
    await asyncio.wait_for(asyncio.gather(closing_down, given_up), 60)


def test_a_database_that_cannot_be_opened_leaves_no_thread_to_report_to_a_loop_that_is_closed(tmp_path: Path) -> None:
    drivers: list[Driver] = []

    async def open_it() -> None:
        drivers.append(Driver(str(tmp_path / "missing" / "other.sqlite"), set()))
        await drivers[-1]

    for _ in range(20):
        with pytest.raises(sqlite3.OperationalError):
            asyncio.run(open_it())
        assert not drivers[-1]._thread.is_alive()


async def test_what_fails_in_a_transaction_takes_all_of_it_back(engine: AsyncEngine) -> None:
    async def insert_twice() -> None:
        async with engine.begin() as connection:
            await connection.execute(INSERT, {"number": MANY})
            await connection.execute(INSERT, {"number": MANY})

    with pytest.raises(IntegrityError):
        await insert_twice()
    async with engine.begin() as connection:
        pass  # nothing is begun, and nothing is left over for the next one
    async with engine.begin() as connection:
        assert len((await connection.execute(READ)).all()) == MANY


async def test_a_commit_that_fails_leaves_no_transaction_to_whoever_has_the_connection_next(
    engine: AsyncEngine, tmp_path: Path
) -> None:
    async with engine.begin() as connection:
        referring = "CREATE TABLE shares (number INTEGER REFERENCES numbers DEFERRABLE INITIALLY DEFERRED)"
        await connection.execute(sa.text(referring))
    with pytest.raises(IntegrityError):
        async with engine.begin() as connection:
            await connection.execute(sa.text("INSERT INTO shares VALUES (-1)"))  # refused by the commit alone
    with closing(sqlite3.connect(tmp_path / "numbers.sqlite", timeout=0)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.rollback()
    async with engine.begin() as connection:
        assert (await connection.execute(sa.text("SELECT count(*) FROM shares"))).scalar() == 0


async def test_who_gives_up_at_any_moment_has_written_all_or_nothing_and_harms_nobody_after_him(
    engine: AsyncEngine,
) -> None:
    async def write(first: int) -> None:
        async with engine.begin() as connection:
            for number in (first, first + 1):
                await connection.execute(INSERT, {"number": number})

    for turns in range(40):  # of the loop, after which it is given up: in every statement, and between them
        writing = asyncio.create_task(write(1_000 + 2 * turns))
        for _ in range(turns):
            await asyncio.sleep(0)
        writing.cancel()
        (given_up,) = await asyncio.gather(writing, return_exceptions=True)
        assert given_up is None or isinstance(given_up, asyncio.CancelledError)
        async with engine.begin() as connection:
            written = sa.text("SELECT count(*) FROM numbers WHERE number IN (:first, :first + 1)")
            assert (await connection.execute(written, {"first": 1_000 + 2 * turns})).scalar() in (0, 2)


ENDS_WITHOUT_CLOSING = """
import asyncio, sys
import sqlalchemy as sa
from adapters.store.database import open_database

async def look():
    async with open_database(sys.argv[1]).begin() as connection:
        await connection.execute(sa.text("SELECT 1"))
    raise SystemExit(3)

asyncio.run(look())
"""


@pytest.mark.external  # a process starts
def test_a_process_that_ends_without_closing_its_connection_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ENDS_WITHOUT_CLOSING, f"sqlite:///{tmp_path / 'numbers.sqlite'}"]
    assert subprocess.run(command, timeout=60, check=False).returncode == 3
