"""Knowledge in SQL: cursors of sources, curated answers, failed builds, predictions with their outcomes, and learned models.

Logs are kept compressed. Confirmed answers are a source of their own, and a removed source has an empty successor.
"""

from __future__ import annotations

import asyncio
import uuid
import zlib
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.model_formats import ArrayFormat
from adapters.store.database import Records, insert_if_absent, record_of, transaction, upsert, values_of
from adapters.store.tables import (
    build_failures,
    calibrators,
    curated_answers,
    ingestions,
    learned_models,
    outcomes,
    predictions,
    reactions,
    source_cursors,
)
from core.model.badge import Calibrator, Estimator, Outcome, Prediction, PredictionKind, RecordedFailure, Verdict
from core.model.conversation import Place
from core.model.document import SOURCE, CuratedAnswer, Document, document
from core.ports import Clock, Ingestion, SourceCursor, Store

LAST = sa.literal(datetime.max.replace(tzinfo=UTC), predictions.c.made_at.type)  # no prediction is made later


class SqlCursors(Records):
    async def load(self, source: str) -> SourceCursor | None:
        return next((record_of(SourceCursor, row) for row in await self._rows(source_cursors, source=source)), None)

    async def save(self, source: str, cursor: SourceCursor) -> None:
        await upsert(self._sql, source_cursors, source=source, **values_of(cursor))


class SqlIngestions(Records):
    async def record(self, ingestion: Ingestion) -> None:
        await upsert(self._sql, ingestions, **values_of(ingestion))

    async def forget(self, source: str) -> None:
        for table in (ingestions, source_cursors):
            await self._delete(table, source=source)

    async def all(self) -> list[Ingestion]:
        ended = [record_of(Ingestion, row) for row in await self._sql.execute(sa.select(ingestions))]
        unfinished = source_cursors.c.source.not_in(sa.select(ingestions.c.source))
        begun = await self._sql.execute(sa.select(source_cursors).where(unfinished))
        return sorted(
            [*ended, *(Ingestion(row.source, None, row.documents) for row in begun)],
            key=lambda ingestion: ingestion.source,
        )


class SqlCurated(Records):
    async def get(self, answer_id: str) -> CuratedAnswer | None:
        return await self._first(curated_answers.c.body, id=answer_id)

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


_LAST_FIRST = (calibrators.c.number.desc(),)
_MADE_BY = [predictions.c[name] == sa.bindparam(name) for name in ("kind", "engine", "estimator_version")]
_LABELLED = (
    sa.select(predictions.c.body, outcomes)
    .join(outcomes, outcomes.c.prediction_id == predictions.c.id)
    .where(*_MADE_BY)
    .order_by(predictions.c.made_at, predictions.c.id, outcomes.c.labelled_at)
)
_NEWEST_JUDGED = (
    sa.select(
        predictions.c.id,
        predictions.c.made_at,
        predictions.c.body["probability"].as_float().label("probability"),
    )
    .where(*_MADE_BY, predictions.c.judged)
    .order_by(predictions.c.made_at.desc(), predictions.c.id.desc())
    .limit(sa.bindparam("limit"))
    .subquery()
)
_VERDICTS = (
    sa.select(_NEWEST_JUDGED.c.id, _NEWEST_JUDGED.c.probability, outcomes.c.correct)
    .join(outcomes, outcomes.c.prediction_id == _NEWEST_JUDGED.c.id)
    .order_by(_NEWEST_JUDGED.c.made_at, _NEWEST_JUDGED.c.id, outcomes.c.labelled_at)
)


class SqlPredictions(Records):
    async def add(self, prediction: Prediction) -> bool:
        row = {
            "id": prediction.id,
            "kind": prediction.kind,
            "engine": prediction.engine,
            "estimator_version": prediction.estimator_version,
            "made_at": prediction.made_at,
            "body": prediction,
        }
        return await insert_if_absent(self._sql, predictions, row)

    async def get(self, prediction_id: str) -> Prediction | None:
        return await self._first(predictions.c.body, id=prediction_id)

    async def label(self, outcome: Outcome) -> None:
        await upsert(self._sql, outcomes, newer=outcomes.c.labelled_at, **values_of(outcome))

    async def unlabel(self, prediction_id: str, labelled_by: str) -> None:
        await self._delete(outcomes, prediction_id=prediction_id, labelled_by=labelled_by)

    async def react(self, prediction_id: str, by: str, *, approves: bool, at: datetime, taken_back: bool) -> bool:
        key = {"prediction_id": prediction_id, "reacted_by": by, "approves": approves}
        return await upsert(self._sql, reactions, newer=reactions.c.at, **key, at=at, taken_back=taken_back)

    async def reactions(self, prediction_id: str, by: str) -> dict[bool, datetime]:
        standing = await self._rows(reactions, prediction_id=prediction_id, reacted_by=by, taken_back=False)
        return {row.approves: row.at for row in standing}

    async def judged_since(self, kind: PredictionKind, since: datetime) -> list[str]:
        subject = predictions.c.body["subject"].as_string()
        judged = sa.select(subject).join(outcomes, outcomes.c.prediction_id == predictions.c.id)
        of_kind = (predictions.c.kind == kind, outcomes.c.labelled_at >= since)
        return await self._list(judged.where(*of_kind).distinct().order_by(subject))

    async def labels_of(self, prediction_id: str) -> list[Outcome]:
        labels = sa.select(outcomes).where(outcomes.c.prediction_id == prediction_id)
        return [record_of(Outcome, row) for row in await self._sql.execute(labels.order_by(outcomes.c.labelled_at))]

    async def labelled(self, estimator: Estimator) -> list[tuple[Prediction, Outcome]]:
        return list(
            {
                row.prediction_id: (row.body, record_of(Outcome, row))
                for row in await self._sql.execute(_LABELLED, _maker(estimator))
            }.values()
        )

    async def estimators(self) -> list[Estimator]:
        columns = (predictions.c.kind, predictions.c.engine, predictions.c.estimator_version)
        following, estimators = sa.select(*columns).order_by(*columns).limit(1), [("", "", "")]
        # One look into the index for each, however many predictions they made: behind the last that the one before made.
        while row := (
            await self._sql.execute(
                following.where(sa.tuple_(*columns, predictions.c.made_at) > sa.tuple_(*estimators[-1], LAST))
            )
        ).first():
            estimators.append(tuple(row))
        return sorted(Estimator(PredictionKind(kind), engine, version) for kind, engine, version in estimators[1:])

    async def verdicts(self, estimator: Estimator, limit: int) -> list[Verdict]:
        judged = _maker(estimator) | {"limit": limit}
        return list({key: (shown, right) for key, shown, right in await self._sql.execute(_VERDICTS, judged)}.values())

    async def recent(self, kind: PredictionKind, limit: int) -> list[tuple[Prediction, Outcome | None]]:
        newest = (
            sa.select(predictions.c.id, predictions.c.body, predictions.c.made_at)
            .where(predictions.c.kind == kind)
            .order_by(predictions.c.made_at.desc(), predictions.c.id)
            .limit(limit)
            .subquery()
        )
        rows = await self._sql.execute(
            sa.select(newest.c.id, newest.c.body, outcomes)
            .outerjoin(outcomes, outcomes.c.prediction_id == newest.c.id)
            .order_by(newest.c.made_at.desc(), newest.c.id, outcomes.c.labelled_at)
        )
        latest = {row.id: (row.body, record_of(Outcome, row) if row.prediction_id else None) for row in rows}
        return list(latest.values())

    async def calibrator(self, estimator: Estimator) -> Calibrator | None:
        return await self._first(calibrators.c.body, *_LAST_FIRST, **_maker(estimator))

    async def calibrator_version(self, version: str) -> Calibrator | None:
        return await self._first(calibrators.c.body, *_LAST_FIRST, version=version)

    async def adopt(self, estimator: Estimator, calibrator: Calibrator) -> None:
        row = {**_maker(estimator), "version": calibrator.version, "body": calibrator}
        await self._sql.execute(calibrators.insert().values(row))


def _maker(estimator: Estimator) -> dict[str, str]:
    return {"kind": estimator.kind, "engine": estimator.engine, "estimator_version": estimator.version}


T = TypeVar("T")

INTERVAL = timedelta(
    seconds=2
)  # between checks for a newer model; also part of the contract in core/ports/knowledge.py


class SqlLearnedModel(Generic[T]):
    """Implements `core.ports.LearnedStore` on one row of a table. Everything raises StoreUnavailable."""

    def __init__(self, engine: AsyncEngine, name: str, form: ArrayFormat[T], clock: Clock) -> None:
        self._engine = engine
        self._name = name
        self._form = form
        self._clock = clock
        self._version = ""  # of the loaded model
        self._content: T | None = None
        self._looked_at: datetime | None = None
        self._looking = asyncio.Lock()  # a new model is fetched once, however many callers wait

    async def load(self) -> T | None:
        async with self._looking:
            now = self._clock.now()
            # Also checked if the clock was set back.
            if self._looked_at is None or abs(now - self._looked_at) >= INTERVAL:
                await self._look()
                self._looked_at = now
            return self._content

    async def load_newest(self) -> T | None:
        await self._look_next_time()
        return await self.load()

    async def save(self, content: T, /) -> None:
        written = await asyncio.to_thread(self._form.written, content)
        version, now = uuid.uuid4().hex, self._clock.now()
        async with transaction(self._engine) as connection:
            await upsert(connection, learned_models, name=self._name, version=version, saved_at=now, content=written)
        await self._look_next_time()

    async def _look_next_time(self) -> None:
        async with self._looking:
            self._looked_at = None

    async def _look(self) -> None:
        """Load the stored model. One that is current is not fetched again."""
        version, content = learned_models.c.version, learned_models.c.content
        query = sa.select(version, sa.case((version != self._version, content)).label("content"))
        async with transaction(self._engine) as connection:
            saved = (await connection.execute(query.where(learned_models.c.name == self._name))).one_or_none()
        if saved is None:
            self._version, self._content = "", None
        elif saved.content is not None:
            self._version, self._content = saved.version, await asyncio.to_thread(self._form.read, saved.content)
