"""The store on SQL: transactions over all stores."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adapters.store.conversations import SqlConversations
from adapters.store.curated import SqlCurated
from adapters.store.cursors import SqlCursors
from adapters.store.database import outages_as
from adapters.store.incidents import SqlIncidents
from adapters.store.ingestions import SqlIngestions
from adapters.store.posts import SqlPosts
from adapters.store.predictions import SqlPredictions
from adapters.store.tasks import SqlTasks
from core.errors import StoreUnavailable


class SqlTransaction:
    def __init__(self, connection: AsyncConnection) -> None:
        self.tasks = SqlTasks(connection)
        self.incidents = SqlIncidents(connection)
        self.posts = SqlPosts(connection)
        self.predictions = SqlPredictions(connection)
        self.conversations = SqlConversations(connection)
        self.ingestions = SqlIngestions(connection)
        self.cursors = SqlCursors(connection)
        self.curated = SqlCurated(connection)


class SqlStore:
    """Implements `core.ports.Store`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[SqlTransaction]:
        with outages_as(StoreUnavailable):
            async with self._engine.begin() as connection:
                yield SqlTransaction(connection)
