"""The store in SQL: transactions over all tables."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adapters.store.conversations import SqlChannelSettings, SqlConversations
from adapters.store.database import outages_as
from adapters.store.incidents import SqlHeldIncidents, SqlIncidents, SqlSilences
from adapters.store.knowledge import SqlBuildFailures, SqlCurated, SqlCursors, SqlIngestions
from adapters.store.locks import LocalLocks, PostgresLocks
from adapters.store.predictions import SqlPredictions
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
        self._engine = engine
        self._locks = locks or (
            PostgresLocks(engine) if engine.dialect.name == "postgresql" else LocalLocks(engine.url.database or "")
        )

    @property
    def engine(self) -> AsyncEngine:
        return self._engine

    @property
    def locks(self) -> PostgresLocks | LocalLocks:
        """Return the locks used by `lock`, which also track live replicas."""
        return self._locks

    def lock(self, name: str) -> AbstractAsyncContextManager[None]:
        return self._locks.lock(name)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[SqlTransaction]:
        with outages_as(StoreUnavailable, Deadlock):
            async with self._engine.begin() as connection:
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
