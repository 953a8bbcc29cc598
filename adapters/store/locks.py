"""Locks that a process loses when it dies: PostgreSQL's advisory locks, or plain ones where one process is alone.

An advisory lock belongs to a session of the database. One session holds all locks of a process, so that a lock costs no
connection, and the server itself notices when the process is gone.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO
from weakref import WeakValueDictionary

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adapters.store.database import outages_as
from core.model.errors import StoreUnavailable

FIRST_PAUSE = 0.01  # seconds until a lock that another process holds is tried again
LONGEST_PAUSE = 0.25  # seconds; the pause doubles up to here
PATIENCE = 3.0  # seconds that a process has to open a new session; more than it lets pass between two calls of `keep`
LONGEST_LOOK = 1.0  # seconds that one look counts for: while the database is gone nobody can open a session


class LocalLocks:
    """Locks of a process that has the database to itself, as SQLite asks for."""

    def __init__(self, database: str) -> None:
        """`database` is the path of the SQLite file."""
        self._path = Path(f"{database}.lock")
        self._file: IO[bytes] | None = None
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

    async def keep(self, name: str) -> None:
        """Be the one process that works on this file. Raises StoreUnavailable if there is another one."""
        if self._file is not None:
            return
        file = await asyncio.to_thread(self._path.open, "wb")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the system lets go when the process dies
        except OSError:
            file.close()
            raise StoreUnavailable(
                f"Another process works on {self._path.stem}: stop it, or use PostgreSQL for several replicas."
            ) from None
        self._file = file

    async def is_lost(self, name: str) -> bool:
        """Whoever kept it is dead: there is no process but this one."""
        return True

    async def close(self) -> None:
        """Let another process work on the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


class PostgresLocks:
    """Locks among all processes on one PostgreSQL database. Everything raises StoreUnavailable."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._session: AsyncConnection | None = None
        self._kept: set[str] = set()
        self._free_for: dict[str, tuple[float, float]] = {}  # seconds, and when it was seen last
        self._talking = asyncio.Lock()  # a session takes one statement at a time
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def lock(self, name: str) -> AsyncGenerator[None]:
        async with self._locks.setdefault(name, asyncio.Lock()):  # a session would give it to a second task as well
            pause = FIRST_PAUSE
            while not await self._try(name):
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            try:
                yield
            finally:
                with suppress(StoreUnavailable):  # the session is gone then, and the lock with it
                    await asyncio.shield(self._ask(_UNLOCK, name))

    async def keep(self, name: str) -> None:
        """Hold this lock until the process ends. To be called again and again: a lost session must be opened anew."""
        if name in self._kept:
            await self._ask(_PING)
        elif await self._ask(_TRY, name):
            self._kept.add(name)
        else:
            raise StoreUnavailable(f"Another process calls itself {name}.")

    async def is_lost(self, name: str) -> bool:
        """Return whether no process was seen to keep this lock for PATIENCE: one whose session broke may open another.

        To be asked again and again. It remembers for how long it saw the lock free, so that a session of its own that
        breaks in between delays little, and an outage in between does not count as if somebody could have taken it.
        """
        if not await self._is_free(name):
            self._free_for.pop(name, None)
            return False
        now = time.monotonic()
        seconds, seen_at = self._free_for.get(name, (0.0, now))
        seconds += min(now - seen_at, LONGEST_LOOK)
        self._free_for[name] = seconds, now
        return seconds >= PATIENCE

    async def close(self) -> None:
        """Let go of everything."""
        async with self._talking:
            await self._end_session()

    async def _is_free(self, name: str) -> bool:
        if not await self._ask(_TRY, name):
            return False
        await self._ask(_UNLOCK, name)
        return True

    async def _try(self, name: str) -> bool:
        asking = asyncio.ensure_future(self._ask(_TRY, name))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            with suppress(StoreUnavailable):  # the session is gone then, and the lock with it
                if await asking:  # nobody would ever let go of it
                    await self._ask(_UNLOCK, name)
            raise

    async def _ask(self, statement: sa.TextClause, name: str = "") -> bool:
        # Whoever gives up waiting must not break a statement off: that ends the session, and with it every lock.
        return await asyncio.shield(asyncio.ensure_future(self._say(statement, name)))

    async def _say(self, statement: sa.TextClause, name: str) -> bool:
        async with self._talking:
            try:
                with outages_as(StoreUnavailable):
                    session = self._session or await self._open_session()
                    return bool(await session.scalar(statement, {"key": _key(name)} if name else {}))
            except StoreUnavailable:
                await self._end_session()
                raise

    async def _open_session(self) -> AsyncConnection:
        session = await self._engine.connect()
        self._session = await session.execution_options(isolation_level="AUTOCOMMIT")
        for name in self._kept:
            if not await session.scalar(_TRY, {"key": _key(name)}):
                raise StoreUnavailable(f"Another process takes over from {name}.")  # and lets go when it has
        return session

    async def _end_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.invalidate()  # not to be returned to the pool with locks in it
            await session.close()


_TRY = sa.text("SELECT pg_try_advisory_lock(:key)")
_UNLOCK = sa.text("SELECT pg_advisory_unlock(:key)")
_PING = sa.text("SELECT true")


def _key(name: str) -> int:
    """PostgreSQL's name for a lock: a signed number of 64 bits."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), signed=True)
