"""Predictions, outcomes and calibrators in SQL."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.database import insert_if_absent, upsert
from adapters.store.tables import calibrators, outcomes, predictions, reactions
from core.model.calibrator import Calibrator
from core.model.prediction import Estimator, Outcome, Prediction, PredictionKind

_PREDICTION = TypeAdapter(Prediction)
_CALIBRATOR = TypeAdapter(Calibrator)


class SqlPredictions:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def add(self, prediction: Prediction) -> None:
        await insert_if_absent(
            self._connection,
            predictions,
            {
                "id": prediction.id,
                "kind": prediction.kind,
                "engine": prediction.engine,
                "estimator_version": prediction.estimator_version,
                "made_at": prediction.made_at,
                "body": _PREDICTION.dump_python(prediction, mode="json"),
            },
        )

    async def get(self, prediction_id: str) -> Prediction | None:
        row = await self._connection.execute(sa.select(predictions.c.body).where(predictions.c.id == prediction_id))
        body = row.scalar_one_or_none()
        return _PREDICTION.validate_python(body) if body is not None else None

    async def label(self, outcome: Outcome) -> None:
        await upsert(
            self._connection,
            outcomes,
            {
                "prediction_id": outcome.prediction_id,
                "labelled_by": outcome.labelled_by,
                "correct": outcome.correct,
                "labelled_at": outcome.labelled_at,
                "comment": outcome.comment,
            },
            newer=outcomes.c.labelled_at,
        )

    async def unlabel(self, prediction_id: str, labelled_by: str) -> None:
        theirs = (outcomes.c.prediction_id == prediction_id, outcomes.c.labelled_by == labelled_by)
        await self._connection.execute(outcomes.delete().where(*theirs))

    async def react(self, prediction_id: str, by: str, *, approves: bool, at: datetime, taken_back: bool) -> bool:
        key = {"prediction_id": prediction_id, "reacted_by": by, "approves": approves}
        return await upsert(
            self._connection, reactions, {**key, "at": at, "taken_back": taken_back}, newer=reactions.c.at
        )

    async def reactions(self, prediction_id: str, by: str) -> dict[bool, datetime]:
        theirs = (reactions.c.prediction_id == prediction_id, reactions.c.reacted_by == by)
        standing = sa.select(reactions.c.approves, reactions.c.at).where(*theirs, reactions.c.taken_back.is_(False))
        return {row.approves: row.at for row in await self._connection.execute(standing)}

    async def judged_since(self, kind: PredictionKind, since: datetime) -> list[str]:
        subject = predictions.c.body["subject"].as_string()
        judged = sa.select(subject).join(outcomes, outcomes.c.prediction_id == predictions.c.id)
        of_kind = (predictions.c.kind == kind, outcomes.c.labelled_at >= since)
        return list((await self._connection.execute(judged.where(*of_kind).distinct().order_by(subject))).scalars())

    async def labels_of(self, prediction_id: str) -> list[Outcome]:
        rows = await self._connection.execute(
            sa.select(outcomes).where(outcomes.c.prediction_id == prediction_id).order_by(outcomes.c.labelled_at)
        )
        return [_outcome(row) for row in rows]

    async def labelled(self, estimator: Estimator) -> list[tuple[Prediction, Outcome]]:
        rows = await self._connection.execute(
            sa.select(predictions.c.body, outcomes)
            .join(outcomes, outcomes.c.prediction_id == predictions.c.id)
            .where(*_made_by(predictions, estimator))
            .order_by(predictions.c.made_at, predictions.c.id, outcomes.c.labelled_at)
        )
        latest = {row.prediction_id: (_PREDICTION.validate_python(row.body), _outcome(row)) for row in rows}
        return list(latest.values())

    async def estimators(self) -> list[Estimator]:
        columns = (predictions.c.kind, predictions.c.engine, predictions.c.estimator_version)
        rows = await self._connection.execute(sa.select(*columns).distinct())
        return sorted(Estimator(PredictionKind(kind), engine, version) for kind, engine, version in rows)

    async def count_labelled(self, estimator: Estimator) -> int:
        count = await self._connection.execute(
            sa.select(sa.func.count(sa.distinct(outcomes.c.prediction_id)))
            .join(predictions, outcomes.c.prediction_id == predictions.c.id)
            .where(*_made_by(predictions, estimator))
        )
        return count.scalar_one()

    async def recent(self, kind: PredictionKind, limit: int) -> list[tuple[Prediction, Outcome | None]]:
        newest = (
            sa.select(predictions.c.id, predictions.c.body, predictions.c.made_at)
            .where(predictions.c.kind == kind)
            .order_by(predictions.c.made_at.desc(), predictions.c.id)
            .limit(limit)
            .subquery()
        )
        rows = await self._connection.execute(
            sa.select(newest.c.id, newest.c.body, outcomes)
            .outerjoin(outcomes, outcomes.c.prediction_id == newest.c.id)
            .order_by(newest.c.made_at.desc(), newest.c.id, outcomes.c.labelled_at)
        )
        latest = {
            row.id: (_PREDICTION.validate_python(row.body), _outcome(row) if row.prediction_id else None)
            for row in rows
        }
        return list(latest.values())

    async def calibrator(self, estimator: Estimator) -> Calibrator | None:
        return await self._last_calibrator(*_made_by(calibrators, estimator))

    async def calibrator_version(self, version: str) -> Calibrator | None:
        return await self._last_calibrator(calibrators.c.version == version)

    async def adopt(self, estimator: Estimator, calibrator: Calibrator) -> None:
        await self._connection.execute(
            calibrators.insert().values(
                kind=estimator.kind,
                engine=estimator.engine,
                estimator_version=estimator.version,
                version=calibrator.version,
                body=_CALIBRATOR.dump_python(calibrator, mode="json"),
            )
        )

    async def _last_calibrator(self, *conditions: sa.ColumnElement[bool]) -> Calibrator | None:
        row = await self._connection.execute(
            sa.select(calibrators.c.body).where(*conditions).order_by(calibrators.c.number.desc()).limit(1)
        )
        body = row.scalar_one_or_none()
        return _CALIBRATOR.validate_python(body) if body is not None else None


def _made_by(table: sa.Table, estimator: Estimator) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        table.c.kind == estimator.kind,
        table.c.engine == estimator.engine,
        table.c.estimator_version == estimator.version,
    )


def _outcome(row: sa.Row[Any]) -> Outcome:
    return Outcome(row.prediction_id, row.correct, row.labelled_by, row.labelled_at, row.comment)
