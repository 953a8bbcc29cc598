"""A SQLite driver that executes fast statements on the event loop, and flushes many commits together.

Most statements take some tens of microseconds. With aiosqlite, each goes to the connection's thread, and returns when
the loop has done all other work meanwhile: the only connection of the only writer would mostly wait. Here, a statement
is executed at once on the loop, unless it was slow before. Calls that may wait for the disk or for another process go
to the thread, and so do calls while the thread is busy. Measured at 50 events a second for 10 s, one run after the
other on two busy cores (`python -m tests.benchmarks load --seconds 10`, and the processor time of the bot): with this
driver, an event takes 21 ms of processor time, an acknowledgement 564 ms at p99, and a post appears in the chat after
14 s in the median; with aiosqlite alone 30 ms, 1,912 ms and 36 s.

A commit that waits for the disk on its own makes every other transaction wait too, because SQLite has one writer. Here,
it is written to the write-ahead log without waiting (`synchronous=NORMAL`), the next transaction begins, and each
returns once the log was flushed after its commit. This is the guarantee of `synchronous=FULL`, for a group at a time.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import aiosqlite
from sqlalchemy import URL, event
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

FIRST = 100  # rows fetched together with the execution
SLOW = 0.003  # seconds; a statement that once took longer runs in the thread from then on
TURN = 0.005  # seconds of computation after which a transaction yields to the event loop
BUSY_TIMEOUT = 10_000  # milliseconds to wait for another process that writes to the file

T = TypeVar("T")


class Connection(sqlite3.Connection):
    """A connection that ends its transaction when it is closed.

    SQLite alone would keep the transaction open, and block others, until the last statement is finalised; an abandoned
    statement may still be referenced by a traceback.
    """

    def close(self) -> None:
        with suppress(sqlite3.Error):  # it may already be closed
            self.rollback()
        super().close()


class Driver(aiosqlite.Connection):
    """A connection for SQLAlchemy to the file at `path`."""

    def __init__(self, path: str, slow: set[str]) -> None:
        """Create the driver. `slow` contains statements that were slow on any connection."""

        def connect() -> sqlite3.Connection:
            # The loop and the connection's thread execute alternately, never at the same time.
            return sqlite3.connect(path, timeout=BUSY_TIMEOUT / 1000, check_same_thread=False, factory=Connection)

        super().__init__(connect, iter_chunk_size=FIRST)
        self._thread.daemon = True  # so that a process that ends without closing the connection does not hang
        self._begins = False
        self._before = 0  # number of changes at the start of the transaction
        self._asked = 0  # requests to the thread, counted by the loop
        self._done = 0  # requests done, counted by the thread
        self._slow = slow
        self._turn = 0.0  # seconds of computation at the last yield

    def begin(self) -> None:
        """Make the next statement begin a write transaction, so that its reads are not older than its writes."""
        self._begins = True

    def cursor(self) -> Any:
        return EagerCursor(self, self._conn.cursor())

    async def run(self, sql: str, execute: Callable[..., T], *arguments: Any) -> T:
        """Run `execute`, which executes `sql`, and return its result."""
        if self._begins:
            await self._begin()
        elif time.thread_time() - self._turn > TURN:
            await asyncio.sleep(0)
            self._turn = time.thread_time()
        if not self._is_idle() or sql in self._slow or not self._conn.in_transaction:
            return await self._execute(execute, *arguments)
        started = time.thread_time()
        try:
            return execute(*arguments)
        finally:
            if time.thread_time() - started > SLOW:
                self._slow.add(sql)

    def stop(self) -> asyncio.Future[Any] | None:
        # After an abandoned close, nobody would answer.
        return super().stop() if self._running else None

    async def commit(self) -> None:
        self._begins = False
        try:
            await self._end(self._conn.commit)
        except sqlite3.Error:
            await self.rollback()  # otherwise the transaction would stay open for the next user of the connection
            raise

    async def rollback(self) -> None:
        self._begins = False
        await self._end(self._conn.rollback)

    async def _connect(self) -> aiosqlite.Connection:
        try:
            return await super()._connect()
        except BaseException:
            self._thread.join()  # it ends at once, and notifies the loop, which may be closed by then
            raise

    async def _begin(self) -> None:
        if not (self._is_idle() and self._begun_at_once()):
            await self._execute(self._wait_and_begin)
        self._begins = False
        self._before = self._conn.total_changes
        self._turn = time.thread_time()

    def _begun_at_once(self) -> bool:
        try:
            self._conn.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            return False
        return True

    def _wait_and_begin(self) -> None:
        self._conn.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT}")
        try:
            self._conn.execute("BEGIN IMMEDIATE")
        finally:
            self._conn.execute("PRAGMA busy_timeout=0")

    async def _end(self, end: Callable[[], None]) -> None:
        """End the transaction. Only a transaction that wrote may wait for the disk."""
        if not self._is_idle() or self._conn.total_changes > self._before:
            await self._execute(end)
        else:
            end()

    def _is_idle(self) -> bool:
        return self._asked == self._done

    async def _execute(self, fn: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        def counted() -> T:
            try:
                return fn(*args, **kwargs)
            finally:
                self._done += 1

        self._asked += 1
        return await super()._execute(counted)


class EagerCursor(aiosqlite.Cursor):
    """A cursor that fetches its first rows with the execution, and further ones on request."""

    _rows: Sequence[Any] = ()
    _has_more = False

    def __init__(self, connection: Driver, cursor: sqlite3.Cursor) -> None:
        super().__init__(connection, cursor)
        self._driver = connection

    async def execute(self, sql: str, parameters: Iterable[Any] | None = None) -> EagerCursor:
        self._rows = await self._driver.run(sql, self._executed, sql, parameters or ())
        self._has_more = len(self._rows) == FIRST
        return self

    async def executemany(self, sql: str, parameters: Iterable[Iterable[Any]]) -> EagerCursor:
        await self._driver.run(sql, self._cursor.executemany, sql, parameters)
        return self

    async def fetchall(self) -> Sequence[Any]:
        rows, self._rows = self._rows, ()
        return [*rows, *await super().fetchall()] if self._has_more else rows

    async def fetchmany(self, size: int | None = None) -> Iterable[Any]:
        if self._has_more and not self._rows:
            return await super().fetchmany(size)
        size = size or self.arraysize
        rows, self._rows = self._rows[:size], self._rows[size:]
        return rows

    async def fetchone(self) -> Any:
        return next(iter(await self.fetchmany(1)), None)

    async def close(self) -> None:
        if self._has_more:
            await super().close()

    def _executed(self, sql: str, parameters: Any) -> list[Any]:
        return self._cursor.execute(sql, parameters).fetchmany(FIRST)


def sqlite_engine(url: URL, to_json: Callable[[Any], str]) -> FlushedEngine:
    """Return an engine for `sqlite:///path`, without connecting. `to_json` writes the values of columns of JSON."""
    # One connection: transactions queue in order, and SQLite never has a second writer of this process.
    engine = create_async_engine(
        url.set(drivername="sqlite+aiosqlite"),
        async_creator=partial(Driver, url.database or ":memory:", set[str]()),
        pool_size=1,
        max_overflow=0,
        pool_reset_on_return=None,  # the returning code has committed or rolled back
        json_serializer=to_json,
    )
    event.listen(engine.sync_engine, "connect", _configure)
    event.listen(engine.sync_engine, "begin", _begin)
    return FlushedEngine(engine)


def _begin(connection: Any) -> None:
    # By default, Python's SQLite module begins a transaction with the first INSERT or UPDATE: an earlier savepoint
    # would commit on its own, and earlier reads could be out of date.
    connection.connection.driver_connection.begin()


def _configure(connection: Any, _record: object) -> None:
    connection.isolation_level = None
    cursor = connection.cursor()
    # An acknowledged webhook must survive a power failure: the engine flushes the log.
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", "busy_timeout=0", "secure_delete=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


class FlushedEngine(AsyncEngine):
    """An engine for a SQLite file whose `begin` returns when the written data is on the disk.

    Raises OSError if the flush fails; the data may or may not be stored then, as after a lost connection during a
    commit.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        super().__init__(engine.sync_engine)
        self._flush = Flush(Path(f"{engine.url.database}-wal"))
        self._turn: AbstractAsyncContextManager[None] = nullcontext()

    def in_background(self) -> FlushedEngine:
        """Return the engine for background work, of which one transaction at a time requests the only connection.

        Other transactions therefore wait for at most one background transaction.
        """
        twin = FlushedEngine(self)
        twin._flush = self._flush
        twin._turn = asyncio.Lock()
        return twin

    @asynccontextmanager
    async def begin(self) -> AsyncGenerator[AsyncConnection]:
        async with self._turn, super().begin() as connection:
            driver: Any = (await connection.get_raw_connection()).driver_connection
            before = driver.total_changes
            yield connection
            has_written = driver.total_changes > before
        if has_written:
            await self._flush()


class Flush:
    """Flushes a file. Calls during a flush share the next one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._next: asyncio.Task[None] | None = None
        self._now = asyncio.Lock()

    async def __call__(self) -> None:
        """Return when everything written before this call is on the disk. Raises OSError."""
        if self._next is None:
            self._next = asyncio.create_task(self._wait_and_flush())
        await asyncio.shield(self._next)

    async def _wait_and_flush(self) -> None:
        async with self._now:
            self._next = None  # later writes may miss this flush
            await asyncio.to_thread(self._sync)

    def _sync(self) -> None:
        # Opened each time, because SQLite may have replaced it. Closing it releases no locks, because there are none on
        # this file.
        try:
            file = os.open(self._path, os.O_RDONLY)
        except FileNotFoundError:
            return  # SQLite has moved its content to the database and flushed that
        try:
            os.fsync(file)
        finally:
            os.close(file)
