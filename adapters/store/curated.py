"""Corrected answers in SQL."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.database import upsert
from adapters.store.tables import curated_answers as table
from core.model.curated import CuratedAnswer

_BODY = TypeAdapter(CuratedAnswer)


class SqlCurated:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def get(self, answer_id: str) -> CuratedAnswer | None:
        rows = await self._connection.execute(sa.select(table.c.body).where(table.c.id == answer_id))
        body = rows.scalar_one_or_none()
        return None if body is None else _BODY.validate_python(body)

    async def save(self, answer: CuratedAnswer) -> None:
        body = _BODY.dump_python(answer, mode="json")
        await upsert(self._connection, table, {"id": answer.id, "expires_at": answer.expires_at, "body": body})

    async def current(self, at: datetime) -> list[CuratedAnswer]:
        rows = await self._connection.execute(
            sa.select(table.c.body).where(table.c.expires_at > at).order_by(table.c.id)
        )
        return [_BODY.validate_python(body) for body in rows.scalars()]
