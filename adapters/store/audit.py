"""The audit log in SQL. A database trigger refuses changes of entries (see the migration)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.database import insert_if_absent
from adapters.store.tables import audit as table
from core.model.audit import Act, AuditEntry, NumberedEntry


class SqlAudit:
    """Implements `core.ports.AuditStore`."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def add(self, entry: AuditEntry) -> None:
        row = {
            "key": entry.key,
            "at": entry.at,
            "act": entry.act,
            "actor": entry.actor,
            "subject": entry.subject,
            "place": entry.place,
            "documents": list(entry.documents),
            "detail": entry.detail,
        }
        await insert_if_absent(self._connection, table, row)

    async def latest(self, limit: int, before: int | None = None, act: Act | None = None) -> list[NumberedEntry]:
        query = sa.select(table).order_by(table.c.number.desc()).limit(limit)
        if before is not None:
            query = query.where(table.c.number < before)
        if act is not None:
            query = query.where(table.c.act == act)
        return _entries(await self._connection.execute(query))

    async def since(self, at: datetime, after: int, limit: int) -> list[NumberedEntry]:
        query = sa.select(table).where(table.c.at >= at, table.c.number > after)
        return _entries(await self._connection.execute(query.order_by(table.c.number).limit(limit)))

    async def forget_before(self, at: datetime) -> int:
        forgotten = await self._connection.execute(table.delete().where(table.c.at < at))
        return forgotten.rowcount


def _entries(rows: Iterable[sa.Row[Any]]) -> list[NumberedEntry]:
    return [NumberedEntry(row.number, _entry(row)) for row in rows]


def _entry(row: sa.Row[Any]) -> AuditEntry:
    return AuditEntry(
        row.key, row.at, Act(row.act), row.actor, row.subject, row.place, tuple(row.documents), row.detail
    )
