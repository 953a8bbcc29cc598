"""Knowledge in SQL: cursors and ingestions of sources, curated answers, and failed builds with their confirmed lines.

Logs are kept compressed.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.database import upsert
from adapters.store.tables import build_failures, curated_answers, ingestions, source_cursors
from core.model.conversation import Place
from core.model.curated import CuratedAnswer
from core.ports import Ingestion, SourceCursor
from core.rca.failure_history import RecordedFailure


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
        for table in (ingestions, source_cursors):
            await self._connection.execute(sa.delete(table).where(table.c.source == source))

    async def all(self) -> list[Ingestion]:
        rows = await self._connection.execute(sa.select(ingestions))
        ended = [
            Ingestion(row.source, row.finished_at, row.documents, row.failure, tuple(row.left_out)) for row in rows
        ]
        unfinished = source_cursors.c.source.not_in(sa.select(ingestions.c.source))
        begun = await self._connection.execute(sa.select(source_cursors).where(unfinished))
        ended += [Ingestion(row.source, None, row.documents) for row in begun]
        return sorted(ended, key=lambda ingestion: ingestion.source)


_ANSWER = TypeAdapter(CuratedAnswer)


class SqlCurated:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def get(self, answer_id: str) -> CuratedAnswer | None:
        rows = await self._connection.execute(
            sa.select(curated_answers.c.body).where(curated_answers.c.id == answer_id)
        )
        body = rows.scalar_one_or_none()
        return None if body is None else _ANSWER.validate_python(body)

    async def save(self, answer: CuratedAnswer) -> None:
        body = _ANSWER.dump_python(answer, mode="json")
        await upsert(
            self._connection, curated_answers, {"id": answer.id, "expires_at": answer.expires_at, "body": body}
        )

    async def current(self, at: datetime) -> list[CuratedAnswer]:
        rows = await self._connection.execute(
            sa.select(curated_answers.c.body).where(curated_answers.c.expires_at > at).order_by(curated_answers.c.id)
        )
        return [_ANSWER.validate_python(body) for body in rows.scalars()]


_FAILURE = TypeAdapter(RecordedFailure)
_ROWS = sa.select(build_failures.c.body, build_failures.c.log)


class SqlBuildFailures:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def get(self, failure_id: str) -> RecordedFailure | None:
        rows = await self._connection.execute(_ROWS.where(build_failures.c.id == failure_id))
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
            "body": _FAILURE.dump_python(replace(failure, log=""), mode="json"),
        }
        await upsert(self._connection, build_failures, values)

    async def confirmed(self, project: str, limit: int) -> list[RecordedFailure]:
        query = _ROWS.where(build_failures.c.project == project, build_failures.c.confirmed).limit(limit)
        rows = await self._connection.execute(query.order_by(build_failures.c.found_at.desc(), build_failures.c.id))
        return [_failure(body, log) for body, log in rows]

    async def in_thread(self, place: Place) -> RecordedFailure | None:
        if place.thread is None:
            return None
        query = _ROWS.where(build_failures.c.channel == place.channel, build_failures.c.thread == place.thread)
        rows = await self._connection.execute(query.order_by(build_failures.c.found_at.desc(), build_failures.c.id))
        told = (_failure(body, log) for body, log in rows)
        return next((each for each in told if each.place and each.place.platform is place.platform), None)

    async def forget_older(self, project: str, keep: int) -> None:
        for confirmed in (True, False):
            of_kind = sa.and_(build_failures.c.project == project, build_failures.c.confirmed.is_(confirmed))
            latest = (
                sa.select(build_failures.c.id)
                .where(of_kind)
                .order_by(build_failures.c.found_at.desc(), build_failures.c.id)
                .limit(keep)
            )
            kept = list((await self._connection.execute(latest)).scalars())
            await self._connection.execute(sa.delete(build_failures).where(of_kind, build_failures.c.id.not_in(kept)))


def _failure(body: Any, log: bytes) -> RecordedFailure:
    return replace(_FAILURE.validate_python(body), log=zlib.decompress(log).decode())
