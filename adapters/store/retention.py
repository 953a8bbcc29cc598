"""Deletion of data that exceeds its retention period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.store.database import outages_as
from adapters.store.tables import (
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
    silences,
    tasks,
    turns,
)
from core.model.errors import StoreUnavailable

BATCH = 1_000  # rows deleted in one transaction, so that concurrent writers do not wait long


@dataclass(frozen=True, slots=True)
class _Rule:
    """Rows of `table` to delete once `at` is past, after the rows of the tables in `after`."""

    table: sa.Table
    at: sa.ColumnElement[datetime]
    only: sa.ColumnElement[bool] = sa.true()  # noqa: RUF009 -- a constant of SQLAlchemy


class _IsoTime(sa.types.TypeDecorator[datetime]):
    """A time as in the incidents' JSON. These texts sort by time, except for fractions of a second."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> str | None:
        return value.astimezone(UTC).isoformat() if value else None


_RESOLVED_AT = sa.type_coerce(incidents.c.body["resolved_at"].as_string(), _IsoTime())
_OF_OPEN_INCIDENT = sa.exists().where(incidents.c.state == "open", posts.c.intent.contains(incidents.c.id))

_RULES: Mapping[str, Sequence[_Rule]] = {
    "events": (
        _Rule(tasks, tasks.c.ended_at),
        _Rule(deliveries, deliveries.c.received_at),
        _Rule(replicas, replicas.c.seen_at),
        _Rule(silences, silences.c.ends_at),
        _Rule(rate_limits, rate_limits.c.used_at),
    ),
    "conversations": (
        _Rule(turns, turns.c.at),
        _Rule(console_messages, console_messages.c.at),
        _Rule(curated_answers, curated_answers.c.expires_at),
    ),
    "incidents": (
        _Rule(incidents, _RESOLVED_AT, incidents.c.state != "open"),
        _Rule(posts, posts.c.made_at, sa.not_(_OF_OPEN_INCIDENT)),
    ),
    "dead_letters": (_Rule(dead_letters, dead_letters.c.at),),
    "build_failures": (_Rule(build_failures, build_failures.c.found_at),),
    "predictions": (_Rule(predictions, predictions.c.made_at),),
    "audit": (_Rule(audit, audit.c.at),),
}


KINDS = tuple(_RULES)


async def delete_before(engine: AsyncEngine, kinds: Mapping[str, datetime]) -> dict[str, int]:
    """Delete what ended before the time given for its kind.

    Returns the deleted rows per kind. Raises StoreUnavailable.
    """
    deleted = dict.fromkeys(kinds, 0)
    for kind, before in kinds.items():
        for rule in _RULES[kind]:
            while count := await _delete_batch(engine, rule, before):
                deleted[kind] += count
    return deleted


async def _delete_batch(engine: AsyncEngine, rule: _Rule, before: datetime) -> int:
    key = next(iter(rule.table.primary_key))
    old = sa.select(key).where(rule.at < before, rule.only).limit(BATCH)
    with outages_as(StoreUnavailable):
        async with engine.begin() as connection:
            keys = list((await connection.execute(old)).scalars())
            if not keys:
                return 0
            if rule.table is predictions:
                await connection.execute(outcomes.delete().where(outcomes.c.prediction_id.in_(keys)))
            if rule.table is incidents:
                await connection.execute(held_incidents.delete().where(held_incidents.c.incident_id.in_(keys)))
            return (await connection.execute(rule.table.delete().where(key.in_(keys)))).rowcount
