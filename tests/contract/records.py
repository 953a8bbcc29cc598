"""What the contracts of the stores keep: records, and where and when they were made."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.store.tables import tasks
from core.model.badge import Evaluation, Prediction, PredictionKind
from core.model.conversation import Place, Platform
from core.model.incident import Incident
from core.ports import Store, Task
from tests import samples as messages

NOW = datetime(2026, 3, 14, 9, 30, 5, 250_000, tzinfo=UTC)
CHANNEL = Place(Platform.SLACK, "C0INC", workspace="T0MARI")
THREAD = replace(CHANNEL, thread="17.25")
MANY = 100


def incident(incident_id: str = "i1", **fields: object) -> Incident:
    return messages.explained_incident(**({"id": incident_id, "group_key": "group", "revision": 1} | fields))


def prediction(prediction_id: str = "p1", minute: int = 0, **fields: object) -> Prediction:
    usual = Prediction(
        id=prediction_id,
        kind=PredictionKind.OWNER,
        subject="i1",
        value="payments",
        evaluation=Evaluation(0.7, 0.3),
        engine="evidence",
        estimator_version="1",
        made_at=NOW + timedelta(minutes=minute),
    )
    return replace(usual, **fields)


async def saved(store: Store, *incidents: Incident) -> None:
    for each in incidents:
        async with store.transaction() as transaction:
            await transaction.incidents.save(each)


async def got(store: Store, incident_id: str) -> Incident | None:
    async with store.transaction() as transaction:
        return await transaction.incidents.get(incident_id)


async def add_ended_task(store: Store, key: str, **payload: object) -> None:
    async with store.transaction() as transaction:
        await transaction.tasks.add(Task(key, "answer", key, payload))
        await transaction.tasks.end([key])


async def task_keys(engine: AsyncEngine) -> set[str]:
    async with engine.begin() as connection:
        return set((await connection.execute(sa.select(tasks.c.key))).scalars())
