"""What a policy does not keep is deleted, and nothing that is under way."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.store import forgetting
from adapters.store.store import SqlStore
from adapters.store.tables import posts
from core.model.badge import Evaluation, Outcome, Prediction, PredictionKind
from core.model.conversation import Place, Platform
from core.model.incident import IncidentState
from core.ports import Task
from tests.contract.records import add_ended_task, task_keys
from tests.samples import confirmed, explained_incident, proposed

NOW = datetime.now(UTC)
THREAD = Place(Platform.SLACK, "C0ASK", "17.25", "T0MARI")


async def test_what_has_ended_long_ago_is_deleted_in_parts_and_what_is_under_way_is_kept(
    engine: AsyncEngine,
) -> None:
    store = SqlStore(engine)
    for number in range(5):
        await add_ended_task(store, f"ended {number}")
    async with store.transaction() as transaction:
        await transaction.tasks.add(Task("under way", "answer", "q", {}))
        await transaction.incidents.add_deliveries({"old": NOW - timedelta(days=31), "new": NOW})
    assert await forgetting.delete_before(engine, {"events": NOW - timedelta(days=30)}) == {"events": 1}
    assert await forgetting.delete_before(engine, {"events": NOW + timedelta(days=1)}) == {"events": 6}
    assert await task_keys(engine) == {"under way"}


async def test_an_incident_is_kept_from_when_it_was_over_and_its_posts_as_long_as_it_is_open(
    engine: AsyncEngine,
) -> None:
    store = SqlStore(engine)
    long_ago = NOW - timedelta(days=400)
    base = replace(explained_incident(), revision=1, opened_at=long_ago)
    over = {"state": IncidentState.RESOLVED, "resolved_at": long_ago}
    for each in (
        replace(base, id="I-open", group_key="1"),
        replace(base, id="I-over", group_key="2", **over),
        replace(base, id="I-over-since-now", group_key="3", **(over | {"resolved_at": NOW})),
    ):
        async with store.transaction() as transaction:
            await transaction.incidents.save(each)
            await transaction.posts.intend(f"incident:{each.id}", THREAD)
    assert await forgetting.delete_before(engine, {"incidents": NOW - timedelta(days=365)}) == {"incidents": 1}
    assert await forgetting.delete_before(engine, {"incidents": NOW + timedelta(days=1)}) == {"incidents": 3}
    async with store.transaction() as transaction:
        assert [each.id for each in await transaction.incidents.recent(9)] == ["I-open"]
    async with engine.begin() as connection:
        assert list((await connection.execute(sa.select(posts.c.intent))).scalars()) == ["incident:I-open"]


async def test_a_prediction_goes_with_what_people_said_of_it(engine: AsyncEngine) -> None:
    store, made = SqlStore(engine), NOW - timedelta(days=800)
    judged = Prediction("p1", PredictionKind.OWNER, "i1", "payments", Evaluation(0.5, 0.5), "evidence", "1", made)
    async with store.transaction() as transaction:
        await transaction.predictions.add(judged)
        await transaction.predictions.label(Outcome("p1", correct=True, labelled_by="slack:U1", labelled_at=made))
        await transaction.predictions.react("p1", "slack:U1", approves=True, at=made, taken_back=False)
    assert await forgetting.delete_before(engine, {"predictions": NOW}) == {"predictions": 1}
    async with store.transaction() as transaction:
        assert await transaction.predictions.labels_of("p1") == []
        assert await transaction.predictions.reactions("p1", "slack:U1") == {}


async def test_a_correction_that_nobody_confirmed_is_not_kept_for_ever(engine: AsyncEngine) -> None:
    store, before = SqlStore(engine), NOW - timedelta(days=90)
    lasting = confirmed(id="lasting", proposed_at=before - timedelta(days=1), expires_at=NOW)
    old, new = (proposed(id=f"{at:%Y}", proposed_at=at) for at in (before - timedelta(days=365), NOW))
    async with store.transaction() as transaction:
        for answer in (lasting, old, new):
            await transaction.curated.save(answer)
    assert await forgetting.delete_before(engine, {"conversations": before}) == {"conversations": 1}
    async with store.transaction() as transaction:
        assert await transaction.curated.get(old.id) is None


async def test_every_kind_can_be_deleted_where_there_is_nothing(engine: AsyncEngine) -> None:
    kinds = dict.fromkeys(forgetting.RETAINED, NOW)
    assert await forgetting.delete_before(engine, kinds) == dict.fromkeys(kinds, 0)
