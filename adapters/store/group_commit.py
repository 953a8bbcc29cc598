"""Group commit for SQLite: one disk flush for several transactions.

A transaction that flushes on its own blocks all others, because SQLite has one writer. Here, transactions are written
to the write-ahead log without flushing (`synchronous=NORMAL`), and each returns after the next flush. This gives the
guarantees of `synchronous=FULL` to a group at a time.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine


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
