"""Predictions, outcomes and calibrators in SQL."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from adapters.store.database import Records, insert_if_absent, record_of, upsert, values_of
from adapters.store.tables import calibrators, outcomes, predictions, reactions
from core.model.badge import Calibrator
from core.model.prediction import Estimator, Outcome, Prediction, PredictionKind


class SqlPredictions(Records):
    async def add(self, prediction: Prediction) -> None:
        row = {
            "id": prediction.id,
            "kind": prediction.kind,
            "engine": prediction.engine,
            "estimator_version": prediction.estimator_version,
            "made_at": prediction.made_at,
            "body": prediction,
        }
        await insert_if_absent(self._sql, predictions, row)

    async def get(self, prediction_id: str) -> Prediction | None:
        return await self._sql.scalar(sa.select(predictions.c.body).where(predictions.c.id == prediction_id))

    async def label(self, outcome: Outcome) -> None:
        await upsert(self._sql, outcomes, newer=outcomes.c.labelled_at, **values_of(outcome))

    async def unlabel(self, prediction_id: str, labelled_by: str) -> None:
        theirs = (outcomes.c.prediction_id == prediction_id, outcomes.c.labelled_by == labelled_by)
        await self._sql.execute(outcomes.delete().where(*theirs))

    async def react(self, prediction_id: str, by: str, *, approves: bool, at: datetime, taken_back: bool) -> bool:
        key = {"prediction_id": prediction_id, "reacted_by": by, "approves": approves}
        return await upsert(self._sql, reactions, newer=reactions.c.at, **key, at=at, taken_back=taken_back)

    async def reactions(self, prediction_id: str, by: str) -> dict[bool, datetime]:
        theirs = (reactions.c.prediction_id == prediction_id, reactions.c.reacted_by == by)
        standing = sa.select(reactions.c.approves, reactions.c.at).where(*theirs, reactions.c.taken_back.is_(False))
        return {row.approves: row.at for row in await self._sql.execute(standing)}

    async def judged_since(self, kind: PredictionKind, since: datetime) -> list[str]:
        subject = predictions.c.body["subject"].as_string()
        judged = sa.select(subject).join(outcomes, outcomes.c.prediction_id == predictions.c.id)
        of_kind = (predictions.c.kind == kind, outcomes.c.labelled_at >= since)
        return await self._list(judged.where(*of_kind).distinct().order_by(subject))

    async def labels_of(self, prediction_id: str) -> list[Outcome]:
        labels = sa.select(outcomes).where(outcomes.c.prediction_id == prediction_id)
        return [record_of(Outcome, row) for row in await self._sql.execute(labels.order_by(outcomes.c.labelled_at))]

    async def labelled(self, estimator: Estimator) -> list[tuple[Prediction, Outcome]]:
        labels = (
            sa.select(predictions.c.body, outcomes)
            .join(outcomes, outcomes.c.prediction_id == predictions.c.id)
            .where(*_made_by(predictions, estimator))
            .order_by(predictions.c.made_at, predictions.c.id, outcomes.c.labelled_at)
        )
        rows = await self._sql.execute(labels)
        return list({row.prediction_id: (row.body, record_of(Outcome, row)) for row in rows}.values())

    async def estimators(self) -> list[Estimator]:
        columns = (predictions.c.kind, predictions.c.engine, predictions.c.estimator_version)
        rows = await self._sql.execute(sa.select(*columns).distinct())
        return sorted(Estimator(PredictionKind(kind), engine, version) for kind, engine, version in rows)

    async def count_labelled(self, estimator: Estimator) -> int:
        labelled = sa.select(sa.func.count(sa.distinct(outcomes.c.prediction_id)))
        made_by = labelled.join(predictions, outcomes.c.prediction_id == predictions.c.id)
        return await self._sql.scalar(made_by.where(*_made_by(predictions, estimator))) or 0

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
        return await self._last_calibrator(*_made_by(calibrators, estimator))

    async def calibrator_version(self, version: str) -> Calibrator | None:
        return await self._last_calibrator(calibrators.c.version == version)

    async def adopt(self, estimator: Estimator, calibrator: Calibrator) -> None:
        row = {
            "kind": estimator.kind,
            "engine": estimator.engine,
            "estimator_version": estimator.version,
            "version": calibrator.version,
            "body": calibrator,
        }
        await self._sql.execute(calibrators.insert().values(row))

    async def _last_calibrator(self, *conditions: sa.ColumnElement[Any]) -> Calibrator | None:
        fitted = sa.select(calibrators.c.body).where(*conditions)
        return await self._sql.scalar(fitted.order_by(calibrators.c.number.desc()).limit(1))


def _made_by(table: sa.Table, estimator: Estimator) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        table.c.kind == estimator.kind,
        table.c.engine == estimator.engine,
        table.c.estimator_version == estimator.version,
    )
