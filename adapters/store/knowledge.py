"""Knowledge in SQL: cursors and ingestions of sources, curated answers, and failed builds with their confirmed lines.

Logs are kept compressed. Confirmed answers are a source of their own, and a removed source has an empty successor.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from adapters.store.database import Records, record_of, upsert, values_of
from adapters.store.tables import build_failures, curated_answers, ingestions, source_cursors
from core.model.conversation import Place
from core.model.curated import SOURCE, CuratedAnswer, document
from core.model.document import Document
from core.model.prediction import RecordedFailure
from core.ports import Clock, Ingestion, SourceCursor, Store


class SqlCursors(Records):
    async def load(self, source: str) -> SourceCursor | None:
        rows = await self._sql.execute(sa.select(source_cursors).where(source_cursors.c.source == source))
        return next((record_of(SourceCursor, row) for row in rows), None)

    async def save(self, source: str, cursor: SourceCursor) -> None:
        await upsert(self._sql, source_cursors, source=source, **values_of(cursor))


class SqlIngestions(Records):
    async def record(self, ingestion: Ingestion) -> None:
        await upsert(self._sql, ingestions, **values_of(ingestion))

    async def forget(self, source: str) -> None:
        for table in (ingestions, source_cursors):
            await self._sql.execute(table.delete().where(table.c.source == source))

    async def all(self) -> list[Ingestion]:
        ended = [record_of(Ingestion, row) for row in await self._sql.execute(sa.select(ingestions))]
        unfinished = source_cursors.c.source.not_in(sa.select(ingestions.c.source))
        begun = await self._sql.execute(sa.select(source_cursors).where(unfinished))
        ended += [Ingestion(row.source, None, row.documents) for row in begun]
        return sorted(ended, key=lambda ingestion: ingestion.source)


class SqlCurated(Records):
    async def get(self, answer_id: str) -> CuratedAnswer | None:
        return await self._sql.scalar(sa.select(curated_answers.c.body).where(curated_answers.c.id == answer_id))

    async def save(self, answer: CuratedAnswer) -> None:
        await upsert(self._sql, curated_answers, id=answer.id, expires_at=answer.expires_at, body=answer)

    async def current(self, at: datetime) -> list[CuratedAnswer]:
        lasting = sa.select(curated_answers.c.body).where(curated_answers.c.expires_at > at)
        return await self._list(lasting.order_by(curated_answers.c.id))


_NEWEST_FIRST = (build_failures.c.found_at.desc(), build_failures.c.id)


class SqlBuildFailures(Records):
    async def get(self, failure_id: str) -> RecordedFailure | None:
        return next(iter(await self._failures(build_failures.c.id == failure_id)), None)

    async def save(self, failure: RecordedFailure) -> None:
        place = failure.place
        await upsert(
            self._sql,
            build_failures,
            id=failure.id,
            project=failure.project,
            found_at=failure.found_at,
            confirmed=bool(failure.confirmed_by),
            channel=place.channel if place else None,
            thread=place.thread if place else None,
            log=zlib.compress(failure.log.encode("utf-8", "replace")),
            body=replace(failure, log=""),
        )

    async def confirmed(self, project: str, limit: int) -> list[RecordedFailure]:
        return await self._failures(build_failures.c.project == project, build_failures.c.confirmed, limit=limit)

    async def in_thread(self, place: Place) -> RecordedFailure | None:
        if place.thread is None:
            return None
        failures = await self._failures(
            build_failures.c.channel == place.channel, build_failures.c.thread == place.thread
        )
        return next((each for each in failures if each.place and each.place.platform == place.platform), None)

    async def forget_older(self, project: str, keep: int) -> None:
        for confirmed in (True, False):
            of_kind = (build_failures.c.project == project, build_failures.c.confirmed.is_(confirmed))
            kept = await self._list(sa.select(build_failures.c.id).where(*of_kind).order_by(*_NEWEST_FIRST).limit(keep))
            await self._sql.execute(build_failures.delete().where(*of_kind, build_failures.c.id.not_in(kept)))

    async def _failures(self, *conditions: sa.ColumnElement[Any], limit: int | None = None) -> list[RecordedFailure]:
        query = sa.select(build_failures.c.body, build_failures.c.log).where(*conditions)
        rows = await self._sql.execute(query.order_by(*_NEWEST_FIRST).limit(limit))
        return [replace(body, log=zlib.decompress(log).decode()) for body, log in rows]


class CuratedSource:
    """The confirmed answers that have not expired. Raises StoreUnavailable."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    @property
    def name(self) -> str:
        return SOURCE

    async def documents(self) -> AsyncIterator[Document]:
        async with self._store.transaction() as transaction:
            current = await transaction.curated.current(self._clock.now())
        for answer in current:
            yield document(answer)


class RemovedSource:
    """An empty source, so that everything read from it earlier is deleted."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def documents(self) -> AsyncIterator[Document]:
        return
        yield
