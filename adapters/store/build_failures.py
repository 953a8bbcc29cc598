"""Failed builds and confirmed log lines in SQL. Logs are stored compressed."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.database import upsert
from adapters.store.tables import build_failures as table
from core.model.conversation import Place
from core.rca.failure_history import RecordedFailure

_BODY = TypeAdapter(RecordedFailure)
_ROWS = sa.select(table.c.body, table.c.log)


class SqlBuildFailures:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def get(self, failure_id: str) -> RecordedFailure | None:
        rows = await self._connection.execute(_ROWS.where(table.c.id == failure_id))
        return next((_failure(body, log) for body, log in rows), None)

    async def save(self, failure: RecordedFailure) -> None:
        values = {
            "id": failure.id,
            "project": failure.project,
            "found_at": failure.found_at,
            "confirmed": bool(failure.confirmed_by),
            "channel": failure.place.channel if failure.place else None,
            "thread": failure.place.thread if failure.place else None,
            "log": zlib.compress(failure.log.encode("utf-8", "replace")),
            "body": _BODY.dump_python(replace(failure, log=""), mode="json"),
        }
        await upsert(self._connection, table, values)

    async def confirmed(self, project: str, limit: int) -> list[RecordedFailure]:
        query = _ROWS.where(table.c.project == project, table.c.confirmed).limit(limit)
        rows = await self._connection.execute(query.order_by(table.c.found_at.desc(), table.c.id))
        return [_failure(body, log) for body, log in rows]

    async def in_thread(self, place: Place) -> RecordedFailure | None:
        if place.thread is None:
            return None
        query = _ROWS.where(table.c.channel == place.channel, table.c.thread == place.thread)
        rows = await self._connection.execute(query.order_by(table.c.found_at.desc(), table.c.id))
        told = (_failure(body, log) for body, log in rows)
        return next((each for each in told if each.place and each.place.platform is place.platform), None)

    async def forget_older(self, project: str, keep: int) -> None:
        for confirmed in (True, False):
            of_kind = sa.and_(table.c.project == project, table.c.confirmed.is_(confirmed))
            latest = sa.select(table.c.id).where(of_kind).order_by(table.c.found_at.desc(), table.c.id).limit(keep)
            kept = list((await self._connection.execute(latest)).scalars())
            await self._connection.execute(sa.delete(table).where(of_kind, table.c.id.not_in(kept)))


def _failure(body: Any, log: bytes) -> RecordedFailure:
    return replace(_BODY.validate_python(body), log=zlib.decompress(log).decode())
