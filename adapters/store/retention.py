"""Deletion of data that exceeds its retention period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.store.database import outages_as
from adapters.store.tables import (
    UtcDateTime,
    audit,
    build_failures,
    console_messages,
    curated_answers,
    dead_letters,
    deliveries,
    held_incidents,
    incidents,
    outcomes,
    posts,
    predictions,
    rate_limits,
    replicas,
    sessions,
    silences,
    tasks,
    turns,
)
from core.model.errors import StoreUnavailable

BATCH = 1_000  # rows deleted in one transaction, so that concurrent writers do not wait long


_BEFORE = sa.bindparam("before", type_=UtcDateTime)
_BEFORE_ISO = sa.bindparam("before_iso", type_=sa.Text)  # as in JSON; such texts sort by time
_OF_OPEN_INCIDENT = sa.exists().where(incidents.c.state == "open", posts.c.intent.contains(incidents.c.id))

_Rule = tuple[sa.Table, sa.ColumnElement[bool]]  # the rows to delete

_RULES: Mapping[str, Sequence[_Rule]] = {
    "events": (
        (tasks, tasks.c.ended_at < _BEFORE),
        (deliveries, deliveries.c.received_at < _BEFORE),
        (replicas, replicas.c.seen_at < _BEFORE),
        (silences, silences.c.ends_at < _BEFORE),
        (sessions, sessions.c.ends_at < _BEFORE),
        (rate_limits, rate_limits.c.used_at < _BEFORE),
    ),
    "conversations": (
        (turns, turns.c.at < _BEFORE),
        (console_messages, console_messages.c.at < _BEFORE),
        (curated_answers, curated_answers.c.expires_at < _BEFORE),
        (
            curated_answers,
            curated_answers.c.expires_at.is_(None) & (curated_answers.c.body["proposed_at"].as_string() < _BEFORE_ISO),
        ),
    ),
    "incidents": (
        (incidents, (incidents.c.body["resolved_at"].as_string() < _BEFORE_ISO) & (incidents.c.state != "open")),
        (posts, (posts.c.made_at < _BEFORE) & sa.not_(_OF_OPEN_INCIDENT)),
    ),
    "dead_letters": ((dead_letters, dead_letters.c.at < _BEFORE),),
    "build_failures": ((build_failures, build_failures.c.found_at < _BEFORE),),
    "predictions": ((predictions, predictions.c.made_at < _BEFORE),),
    "audit": ((audit, audit.c.at < _BEFORE),),
}
KINDS = tuple(_RULES)


async def delete_before(engine: AsyncEngine, kinds: Mapping[str, datetime]) -> dict[str, int]:
    """Delete the data of each kind that ended before the given time.

    Returns the deleted rows per kind. Raises StoreUnavailable.
    """
    deleted = dict.fromkeys(kinds, 0)
    for kind, before in kinds.items():
        for rule in _RULES[kind]:
            while count := await _delete_batch(engine, rule, before):
                deleted[kind] += count
    return deleted


async def _delete_batch(engine: AsyncEngine, rule: _Rule, before: datetime) -> int:
    table, is_old = rule
    (key, *_) = table.primary_key
    old = sa.select(key).where(is_old).limit(BATCH)
    with outages_as(StoreUnavailable):
        async with engine.begin() as connection:
            times = {"before": before, "before_iso": before.astimezone(UTC).isoformat()}
            keys = list(await connection.scalars(old, times))
            if not keys:
                return 0
            if table is predictions:
                await connection.execute(outcomes.delete().where(outcomes.c.prediction_id.in_(keys)))
            if table is incidents:
                await connection.execute(held_incidents.delete().where(held_incidents.c.incident_id.in_(keys)))
            return (await connection.execute(table.delete().where(key.in_(keys)))).rowcount
