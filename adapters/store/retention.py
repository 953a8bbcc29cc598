"""Deletes what a policy does not keep any longer, and what somebody asks to be forgotten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adapters.store.conversations import SEPARATOR
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
    replicas,
    silences,
    tasks,
    turns,
)
from core.conversation import Speaker, turn_key
from core.errors import StoreUnavailable

BATCH = 1_000  # rows deleted in one transaction: whoever writes meanwhile does not wait long
NOBODY = "forgotten"  # stands for a person who asked to be forgotten


@dataclass(frozen=True, slots=True)
class _Rule:
    """Rows of `table` go when `at` is past; `after` are rows of others that go before them."""

    table: sa.Table
    at: sa.ColumnElement[datetime]
    only: sa.ColumnElement[bool] = sa.true()  # noqa: RUF009 -- a constant of SQLAlchemy


class _IsoTime(sa.types.TypeDecorator[datetime]):
    """A point in time as the incidents' bodies hold it: such texts are in order of time, but for parts of a second."""

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
    """Delete what ended before the time given for its kind; kind → how many rows. Raises StoreUnavailable."""
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


async def forget(engine: AsyncEngine, *, person: str = "", thread: str = "") -> list[str]:
    """Delete what this person (the platform's id) said and pressed, or what was said in a thread (id of its root).

    What was concluded stays for calibration without its words and without a name: a label by the person becomes one by
    nobody. Returns the keys of the tasks that are forgotten, whose workflows must be forgotten too. Tasks that have not
    ended are left. Raises StoreUnavailable.
    """
    with outages_as(StoreUnavailable):
        async with engine.begin() as connection:
            keys, subjects = await _theirs(connection, person, thread)
            said = [turn_key(subject, speaker) for subject in subjects for speaker in Speaker]
            await _delete(connection, turns.c.key, said)
            await _delete(connection, tasks.c.key, keys)
            if thread:
                in_thread = turns.c.thread.endswith(f"{SEPARATOR}{thread}", autoescape=True)
                await connection.execute(turns.delete().where(in_thread))
            if person:
                await _forget_labels(connection, person)
            return keys


async def _delete(connection: AsyncConnection, column: sa.Column[str], values: Sequence[str]) -> None:
    """In parts: a statement has a limited number of parameters."""
    for start in range(0, len(values), BATCH):
        await connection.execute(sa.delete(column.table).where(column.in_(values[start : start + BATCH])))


async def _theirs(connection: AsyncConnection, person: str, thread: str) -> tuple[list[str], list[str]]:
    ended = sa.select(tasks.c.key, tasks.c.subject, tasks.c.payload).where(tasks.c.ended_at.is_not(None))
    keys: list[str] = []
    subjects: list[str] = []
    async for row in await connection.stream(ended):
        who = (row.payload.get("asker") or row.payload.get("person") or {}).get("id")
        where = (row.payload.get("place") or {}).get("thread")
        if (person and who == person) or (thread and where == thread):
            keys.append(row.key)
            subjects.append(row.subject)
    return keys, subjects


async def _forget_labels(connection: AsyncConnection, person: str) -> None:
    """A label is named by platform and id; two of the forgotten may have labelled one prediction."""
    labels = await connection.execute(
        sa.select(outcomes.c.prediction_id, outcomes.c.labelled_by).where(
            sa.or_(outcomes.c.labelled_by == person, outcomes.c.labelled_by.endswith(f":{person}", autoescape=True))
        )
    )
    for prediction_id, labelled_by in list(labels):
        taken = await connection.scalar(
            sa.select(sa.func.count())
            .select_from(outcomes)
            .where(outcomes.c.prediction_id == prediction_id, outcomes.c.labelled_by.startswith(NOBODY))
        )
        await connection.execute(
            outcomes.update()
            .where(outcomes.c.prediction_id == prediction_id, outcomes.c.labelled_by == labelled_by)
            .values(labelled_by=f"{NOBODY}-{taken}", comment="")
        )
