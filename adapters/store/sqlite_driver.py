"""SQLite's driver, staying on the loop for what takes less time than the way to another thread.

Most statements take some tens of microseconds. With aiosqlite each goes to the connection's thread, and comes back once
the loop has done whatever came up meanwhile: the only connection of the only writer would mostly wait for its turn. Here
a statement is executed at once, in the loop, until it was seen to be slow; what may wait for the disk or for another
process goes to the thread, as does what comes while that is busy.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import aiosqlite

FIRST = 100  # rows that are brought along when a statement is executed
SLOW = 0.003  # seconds of computing; what took longer once is left to the thread from then on
TURN = 0.005  # seconds of computing after which a transaction lets the loop do what else there is
BUSY_TIMEOUT = 10_000  # milliseconds to wait for another process that writes to the same file

T = TypeVar("T")


class Connection(sqlite3.Connection):
    """One that ends its transaction when it is closed.

    SQLite alone would keep it open, and everybody else out, until the last statement is forgotten; whoever gave one up
    may keep it in a traceback.
    """

    def close(self) -> None:
        with suppress(sqlite3.Error):  # it may be closed already
            self.rollback()
        super().close()


class Driver(aiosqlite.Connection):
    """A connection for SQLAlchemy to the file at `path`."""

    def __init__(self, path: str, slow: set[str]) -> None:
        """`slow` are statements that were seen to be slow, by any connection."""

        def connect() -> sqlite3.Connection:
            # The loop and the connection's own thread execute in turn, never at the same time.
            return sqlite3.connect(path, timeout=BUSY_TIMEOUT / 1000, check_same_thread=False, factory=Connection)

        super().__init__(connect, iter_chunk_size=FIRST)
        self._thread.daemon = True  # a process that ends without closing its connection does not wait for it forever
        self._begins = False
        self._before = 0  # changes, when the transaction began
        self._asked = 0  # of the thread, counted by the loop
        self._done = 0  # by the thread, counted by itself
        self._slow = slow
        self._turn = 0.0  # seconds of computing, when the transaction had its last turn

    def begin(self) -> None:
        """Let the next statement begin a transaction that may write: what it reads is not older than what it writes."""
        self._begins = True

    def cursor(self) -> Any:
        return EagerCursor(self, self._conn.cursor())

    async def run(self, sql: str, execute: Callable[..., T], *arguments: Any) -> T:
        """Return the result of `execute`, which executes `sql`."""
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
        # It may be closed after it was given up: nobody would answer any more.
        return super().stop() if self._running else None

    async def commit(self) -> None:
        self._begins = False
        try:
            await self._end(self._conn.commit)
        except sqlite3.Error:
            await self.rollback()  # the transaction would stay open, and meet whoever has the connection next
            raise

    async def rollback(self) -> None:
        self._begins = False
        await self._end(self._conn.rollback)

    async def _connect(self) -> aiosqlite.Connection:
        try:
            return await super()._connect()
        except BaseException:
            self._thread.join()  # it ends at once, and says so to the loop, which may be closed by then
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
        """Only what was written may wait for the disk."""
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
    """A cursor that has its first rows once it has executed; only if there are more does it go and fetch them."""

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
