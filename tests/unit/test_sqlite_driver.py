from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.store.database import open_database
from adapters.store.sqlite_driver import FIRST

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
    engine: AsyncEngine, tmp_path: Path
) -> None:
    async with engine.begin() as connection:
        await connection.execute(sa.text("PRAGMA busy_timeout=1"))
    with closing(sqlite3.connect(tmp_path / "numbers.sqlite")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OperationalError, match="locked"):
            async with engine.begin() as connection:
                await connection.execute(INSERT, [{"number": MANY}, {"number": MANY + 1}])
    async with engine.begin() as connection:
        await connection.execute(INSERT, {"number": MANY})
        assert len((await connection.execute(READ)).all()) == MANY + 1


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


def test_a_process_that_ends_without_closing_its_connection_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ENDS_WITHOUT_CLOSING, f"sqlite:///{tmp_path / 'numbers.sqlite'}"]
    assert subprocess.run(command, timeout=60, check=False).returncode == 3
