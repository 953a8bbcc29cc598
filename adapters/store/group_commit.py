"""SQLite with one wait for the disk for all that was committed meanwhile.

A commit that waits for the disk by itself keeps every other transaction waiting as well, since SQLite has one writer.
Here it is written to the write-ahead log without waiting (`synchronous=NORMAL`), the next transaction begins, and each
returns once the log has been flushed after its commit: what `synchronous=FULL` guarantees, for a group at a time.
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
    """An engine on a SQLite file whose `begin` returns when what was written is on the disk.

    Raises OSError if it cannot be flushed: then it may be there or not, as when a server is lost during a commit.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        super().__init__(engine.sync_engine)
        self._flush = Flush(Path(f"{engine.url.database}-wal"))
        self._turn: AbstractAsyncContextManager[None] = nullcontext()

    def in_background(self) -> FlushedEngine:
        """The same engine for work of which one transaction at a time asks for the only connection.

        Whoever is waited for finds at most that one before him.
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
    """Flushes a file; whoever comes while that is being done waits for the next time, together with all others."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._next: asyncio.Task[None] | None = None
        self._now = asyncio.Lock()

    async def __call__(self) -> None:
        """Return when everything that was written before this call is on the disk. Raises OSError."""
        if self._next is None:
            self._next = asyncio.create_task(self._wait_and_flush())
        await asyncio.shield(self._next)

    async def _wait_and_flush(self) -> None:
        async with self._now:
            self._next = None  # what is written from now on may come too late for this time
            await asyncio.to_thread(self._sync)

    def _sync(self) -> None:
        # Opened anew each time, since SQLite may have replaced it. It holds no locks on this file that this could end.
        try:
            file = os.open(self._path, os.O_RDONLY)
        except FileNotFoundError:
            return  # SQLite has moved all of it to the database, and flushed that
        try:
            os.fsync(file)
        finally:
            os.close(file)
