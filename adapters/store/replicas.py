"""Replicas in SQL."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.database import upsert
from adapters.store.tables import replicas


class SqlReplicas:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def seen(self, replica: str, at: datetime) -> None:
        await upsert(self._connection, replicas, {"id": replica, "seen_at": at})

    async def all(self) -> dict[str, datetime]:
        return {row.id: row.seen_at for row in await self._connection.execute(sa.select(replicas))}

    async def remove(self, replica: str) -> None:
        await self._connection.execute(replicas.delete().where(replicas.c.id == replica))
