"""The audit log in SQL. A database trigger refuses changes of entries (see `migrations.py`)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from adapters.store.database import Records, insert_if_absent, record_of, values_of
from adapters.store.tables import audit
from core.model.audit import Act, AuditEntry, NumberedEntry


class SqlAudit(Records):
    """Implements `core.ports.AuditStore`."""

    async def add(self, entry: AuditEntry) -> None:
        await insert_if_absent(self._sql, audit, values_of(entry))

    async def latest(self, limit: int, before: int | None = None, act: Act | None = None) -> list[NumberedEntry]:
        found = sa.select(audit).order_by(audit.c.number.desc()).limit(limit)
        if before is not None:
            found = found.where(audit.c.number < before)
        if act is not None:
            found = found.where(audit.c.act == act)
        return await self._entries(found)

    async def since(self, at: datetime, after: int, limit: int) -> list[NumberedEntry]:
        found = sa.select(audit).where(audit.c.at >= at, audit.c.number > after)
        return await self._entries(found.order_by(audit.c.number).limit(limit))

    async def forget_before(self, at: datetime) -> int:
        return await self._count(audit.delete().where(audit.c.at < at))

    async def _entries(self, query: sa.Select[Any]) -> list[NumberedEntry]:
        return [
            NumberedEntry(row.number, replace(record_of(AuditEntry, row), act=Act(row.act)))
            for row in await self._sql.execute(query)
        ]
