"""SQLite's driver, visiting its thread once for each statement.

The cursor of aiosqlite goes there to be made, to execute, to fetch and to be closed, and a transaction to begin. Each of
these ways costs more than most statements, and takes a turn of the interpreter from whatever computes meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import aiosqlite

FIRST = 100  # rows that are brought along when a statement is executed


class Driver(aiosqlite.Connection):
    """A connection for SQLAlchemy to the file at `path`."""

    def __init__(self, path: str) -> None:
        # The loop makes its cursors and reads its properties; the connection's own thread executes everything.
        super().__init__(lambda: sqlite3.connect(path, check_same_thread=False), iter_chunk_size=FIRST)
        self._thread.daemon = True  # a process that ends without closing its connection does not wait for it forever
        self._begins = False

    def begin(self) -> None:
        """Let the next statement begin a transaction that may write: what it reads is not older than what it writes."""
        self._begins = True

    def cursor(self) -> Any:
        return EagerCursor(self, self._conn.cursor())

    async def commit(self) -> None:
        self._begins = False
        try:
            await super().commit()
        except sqlite3.Error:
            await super().rollback()  # the transaction would stay open, and meet whoever has the connection next
            raise

    async def rollback(self) -> None:
        self._begins = False
        await super().rollback()

    def begin_if_due(self) -> None:
        """To be called in the connection's thread before a statement."""
        if self._begins:
            self._conn.execute("BEGIN IMMEDIATE")
            self._begins = False


class EagerCursor(aiosqlite.Cursor):
    """A cursor that has its first rows once it has executed; only if there are more does it go and fetch them."""

    _rows: Sequence[Any] = ()
    _has_more = False

    def __init__(self, connection: Driver, cursor: sqlite3.Cursor) -> None:
        super().__init__(connection, cursor)
        self._driver = connection

    async def execute(self, sql: str, parameters: Iterable[Any] | None = None) -> EagerCursor:
        self._rows = await self._execute(self._executed, sql, parameters or ())
        self._has_more = len(self._rows) == FIRST
        return self

    async def executemany(self, sql: str, parameters: Iterable[Iterable[Any]]) -> EagerCursor:
        await self._execute(self._executed_many, sql, parameters)
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
        self._driver.begin_if_due()
        return self._cursor.execute(sql, parameters).fetchmany(FIRST)

    def _executed_many(self, sql: str, parameters: Any) -> None:
        self._driver.begin_if_due()
        self._cursor.executemany(sql, parameters)
