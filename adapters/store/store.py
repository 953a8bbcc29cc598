"""The store in SQL: transactions over all tables.

Its locks are lost by a process that dies: PostgreSQL advisory locks, or local ones for a single process. An advisory lock
belongs to a database session. One session holds all locks of a process, so a lock needs no connection of its own, and the
server notices when the process is gone.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import time
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import IO
from weakref import WeakValueDictionary

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adapters.store.conversations import (
    SqlChannelSettings,
    SqlConversations,
    SqlHeldIncidents,
    SqlIncidents,
    SqlSilences,
)
from adapters.store.database import outages_as, transaction
from adapters.store.knowledge import SqlBuildFailures, SqlCurated, SqlCursors, SqlIngestions, SqlPredictions
from adapters.store.sqlite import FlushedEngine
from adapters.store.work import SqlAudit, SqlDeadLetters, SqlPosts, SqlReplicas, SqlTasks
from core.model.errors import Deadlock, StoreUnavailable

AT_ONCE = 3  # concurrent background transactions; enough to keep the database busy while others are flushed


class SqlTransaction:
    """Implements `core.ports.Transaction`."""

    def __init__(self, connection: AsyncConnection) -> None:
        self.tasks = SqlTasks(connection)
        self.replicas = SqlReplicas(connection)
        self.incidents = SqlIncidents(connection)
        self.posts = SqlPosts(connection)
        self.dead_letters = SqlDeadLetters(connection)
        self.silences = SqlSilences(connection)
        self.predictions = SqlPredictions(connection)
        self.conversations = SqlConversations(connection)
        self.ingestions = SqlIngestions(connection)
        self.cursors = SqlCursors(connection)
        self.curated = SqlCurated(connection)
        self.build_failures = SqlBuildFailures(connection)
        self.channel_settings = SqlChannelSettings(connection)
        self.held_incidents = SqlHeldIncidents(connection)
        self.audit = SqlAudit(connection)


class SqlStore:
    """Implements `core.ports.Store`."""

    def __init__(self, engine: AsyncEngine, locks: PostgresLocks | LocalLocks | None = None) -> None:
        self.engine = engine
        self.locks = locks or (  # of `lock`, and of live replicas
            PostgresLocks(engine) if engine.dialect.name == "postgresql" else LocalLocks(engine.url.database or "")
        )

    def lock(self, name: str) -> AbstractAsyncContextManager[None]:
        return self.locks.lock(name)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[SqlTransaction]:
        async with transaction(self.engine, StoreUnavailable, Deadlock) as connection:
            yield SqlTransaction(connection)


class BackgroundStore(SqlStore):
    """The store for background work, with few concurrent transactions.

    Transactions that record and acknowledge incoming events therefore hardly wait.
    """

    def __init__(self, store: SqlStore) -> None:
        engine = store.engine
        super().__init__(engine.in_background() if isinstance(engine, FlushedEngine) else engine, store.locks)
        self._turns = asyncio.Semaphore(AT_ONCE)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[SqlTransaction]:
        async with self._turns, super().transaction() as transaction:
            yield transaction


FIRST_PAUSE = 0.01  # seconds before the first retry of a lock held by another process
LONGEST_PAUSE = 0.25  # seconds; the limit of the doubling pause
NEW_SESSION_TIMEOUT = 3.0  # seconds to open a new session; longer than the pause between two calls of `keep`
LONGEST_LOOK = 1.0  # seconds that one check counts for: nobody can open a session during a database outage


class LocalLocks:
    """Locks for a process that has the SQLite database for itself."""

    def __init__(self, database: str) -> None:
        """Create the locks. `database` is the path of the SQLite file."""
        self._path = Path(f"{database}.lock")
        self._file: IO[bytes] | None = None
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

    async def keep(self, name: str) -> None:
        """Become the only process on this file. Raises StoreUnavailable if there is another one."""
        if self._file is not None:
            return
        file = await asyncio.to_thread(self._path.open, "wb")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # released by the operating system when the process dies
        except OSError:
            file.close()
            raise StoreUnavailable(
                f"Another process works on {self._path.stem}: stop it, or use PostgreSQL for several replicas."
            ) from None
        self._file = file

    async def is_lost(self, name: str) -> bool:
        """Return True: there is no other live process."""
        return True

    async def close(self) -> None:
        """Allow other processes to use the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


class PostgresLocks:
    """Locks among all processes on a PostgreSQL database. All methods raise StoreUnavailable."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._session: AsyncConnection | None = None
        self._kept: set[str] = set()
        self._free_for: dict[str, tuple[float, float]] = {}  # seconds, and the time of the last check
        self._talking = asyncio.Lock()  # a session executes one statement at a time
        self._is_closed = False
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def lock(self, name: str) -> AsyncGenerator[None]:
        async with self._locks.setdefault(name, asyncio.Lock()):  # the session would also grant it to a second task
            pause = FIRST_PAUSE
            while not await self._try(name):
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            try:
                yield
            finally:
                with suppress(StoreUnavailable):  # the session and its locks are gone
                    await asyncio.shield(self._ask(_UNLOCK, name))

    async def keep(self, name: str) -> None:
        """Hold this lock until the process ends. Call it repeatedly, to open a new session after a lost one."""
        if name in self._kept:
            await self._ask(_PING)
        elif await self._ask(_TRY, name):
            self._kept.add(name)
        else:
            raise StoreUnavailable(f"Another process calls itself {name}.")

    async def is_lost(self, name: str) -> bool:
        """Return whether no process held this lock for NEW_SESSION_TIMEOUT, which leaves a process time to open a new session.

        Call it repeatedly. The time for which the lock was seen free is remembered, so that a broken session of our own
        delays the result little, and a database outage does not count.
        """
        if not await self._is_free(name):
            self._free_for.pop(name, None)
            return False
        now = time.monotonic()
        seconds, seen_at = self._free_for.get(name, (0.0, now))
        seconds += min(now - seen_at, LONGEST_LOOK)
        self._free_for[name] = seconds, now
        return seconds >= NEW_SESSION_TIMEOUT

    async def close(self) -> None:
        """Release all locks, and take no more."""
        self._is_closed = True
        async with self._talking:
            if self._session is not None:
                with suppress(StoreUnavailable), outages_as(StoreUnavailable):  # gone already, and its locks with it
                    await self._session.scalar(_UNLOCK_ALL, {})  # the server may notice the end of a session later
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
            with suppress(StoreUnavailable):  # the session and its locks are gone
                if await asking:  # otherwise nobody would release it
                    await self._ask(_UNLOCK, name)
            raise

    async def _ask(self, statement: sa.TextClause, name: str = "") -> bool:
        # A cancelled statement would end the session and release every lock, so it is shielded.
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
        if self._is_closed:  # a session opened now would keep the locks of a stopped process
            raise StoreUnavailable("The bot is stopping and takes no more locks.")
        session = await self._engine.connect()
        self._session = await session.execution_options(isolation_level="AUTOCOMMIT")
        for name in self._kept:
            if not await session.scalar(_TRY, {"key": _key(name)}):
                raise StoreUnavailable(f"Another process takes over from {name}.")  # and releases the locks afterwards
        return session

    async def _end_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.invalidate()  # not returned to the pool while it holds locks
            await session.close()


_TRY = sa.text("SELECT pg_try_advisory_lock(:key)")
_UNLOCK = sa.text("SELECT pg_advisory_unlock(:key)")
_UNLOCK_ALL = sa.text("SELECT pg_advisory_unlock_all()")
_PING = sa.text("SELECT true")


def _key(name: str) -> int:
    """Return PostgreSQL's key of a lock: a signed 64-bit number."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), signed=True)
