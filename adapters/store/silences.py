"""Declared maintenance windows in SQL."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.database import upsert
from adapters.store.tables import silences as table
from core.model.silences import Silence

_BODY = TypeAdapter(Silence)


class SqlSilences:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def save(self, silence: Silence) -> None:
        body = _BODY.dump_python(silence, mode="json")
        await upsert(self._connection, table, {"id": silence.id, "ends_at": silence.ends_at, "body": body})

    async def not_over(self, at: datetime) -> list[Silence]:
        rows = await self._connection.execute(
            sa.select(table.c.body).where(table.c.ends_at > at).order_by(table.c.ends_at, table.c.id)
        )
        return [_BODY.validate_python(body) for body in rows.scalars()]
