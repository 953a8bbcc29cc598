"""The freshness of sources in SQL."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.database import upsert
from adapters.store.tables import ingestions
from core.ports import Ingestion


class SqlIngestions:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def record(self, ingestion: Ingestion) -> None:
        await upsert(
            self._connection,
            ingestions,
            {
                "source": ingestion.source,
                "finished_at": ingestion.finished_at,
                "documents": ingestion.documents,
                "failure": ingestion.failure,
                "left_out": list(ingestion.left_out),
            },
        )

    async def forget(self, source: str) -> None:
        await self._connection.execute(sa.delete(ingestions).where(ingestions.c.source == source))

    async def all(self) -> list[Ingestion]:
        rows = await self._connection.execute(sa.select(ingestions).order_by(ingestions.c.source))
        return [Ingestion(row.source, row.finished_at, row.documents, row.failure, tuple(row.left_out)) for row in rows]
