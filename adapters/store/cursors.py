"""Cursors of changing sources in SQL."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.database import upsert
from adapters.store.tables import source_cursors
from core.ports import SourceCursor


class SqlCursors:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def load(self, source: str) -> SourceCursor | None:
        rows = await self._connection.execute(sa.select(source_cursors).where(source_cursors.c.source == source))
        row = rows.one_or_none()
        return SourceCursor(row.position, row.documents) if row else None

    async def save(self, source: str, cursor: SourceCursor) -> None:
        values = {"source": source, "position": cursor.position, "documents": cursor.documents}
        await upsert(self._connection, source_cursors, values)
