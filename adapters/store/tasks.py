"""The work of all replicas in SQL: tasks, replicas, posts, and dead letters."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, get_args

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.database import insert_if_absent, upsert
from adapters.store.tables import dead_letters as table
from adapters.store.tables import posts, replicas, tasks
from core.model.conversation import MessageReference, Place
from core.model.messages import Message
from core.ports import Backlog, DeadLetter, Post, Task


class SqlTasks:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def add(self, task: Task) -> bool:
        return await insert_if_absent(
            self._connection,
            tasks,
            {
                "key": task.key,
                "workflow": task.workflow,
                "subject": task.subject,
                "payload": dict(task.payload),
                "added_at": datetime.now(UTC),  # used by operators only
                "correlation": task.correlation,
            },
        )

    async def is_known(self, key: str) -> bool:
        found = await self._connection.execute(sa.select(tasks.c.number).where(tasks.c.key == key))
        return found.first() is not None

    async def claim(self, owner: str, limit: int) -> list[Task]:
        oldest = (
            sa.select(tasks)
            .where(tasks.c.ended_at.is_(None), tasks.c.owner.is_(None))
            .order_by(tasks.c.number)
            .limit(limit)
        )
        rows = list(await self._connection.execute(oldest.with_for_update()))
        if rows:
            numbers = [row.number for row in rows]
            claimed = tasks.update().where(tasks.c.number.in_(numbers)).values(owner=owner)
            await self._connection.execute(claimed)
        return [Task(row.key, row.workflow, row.subject, row.payload, row.correlation) for row in rows]

    async def release(self, owners: Collection[str], kept: Collection[str] = ()) -> int:
        owned = tasks.update().where(tasks.c.owner.in_(owners), tasks.c.ended_at.is_(None), tasks.c.key.not_in(kept))
        return (await self._connection.execute(owned.values(owner=None))).rowcount

    async def end(self, keys: Collection[str]) -> None:
        # The end time is used by the retention policy only.
        ended = tasks.update().where(tasks.c.key.in_(keys)).values(owner=None, ended_at=datetime.now(UTC))
        await self._connection.execute(ended)

    async def reopen(self, keys: Collection[str], owner: str) -> None:
        reopened = tasks.update().where(tasks.c.key.in_(keys)).values(owner=owner, ended_at=None)
        await self._connection.execute(reopened)

    async def backlog(self) -> Backlog:
        waits = tasks.c.owner.is_(None)
        counted = sa.select(
            sa.func.count().filter(waits).label("waiting"),
            sa.func.min(tasks.c.added_at).filter(waits).label("oldest"),
            sa.func.count().filter(sa.not_(waits)).label("under_way"),
        )
        row = (await self._connection.execute(counted.where(tasks.c.ended_at.is_(None)))).one()
        return Backlog(row.waiting, row.oldest, row.under_way)


class SqlReplicas:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def seen(self, replica: str, at: datetime) -> None:
        await upsert(self._connection, replicas, {"id": replica, "seen_at": at})

    async def all(self) -> dict[str, datetime]:
        return {row.id: row.seen_at for row in await self._connection.execute(sa.select(replicas))}

    async def remove(self, replica: str) -> None:
        await self._connection.execute(replicas.delete().where(replicas.c.id == replica))


_PLACE = TypeAdapter(Place)
_REFERENCE = TypeAdapter(MessageReference)


class SqlPosts:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def intend(self, intent: str, place: Place) -> Post:
        values = {
            "intent": intent,
            "place": _PLACE.dump_python(place, mode="json"),
            "attempted": False,
            "content_hash": "",
            "withdrawn": False,
            "claim": "",
            "made_at": datetime.now(UTC),
        }
        if await insert_if_absent(self._connection, posts, values):
            return Post(intent, place)
        return _post((await self._connection.execute(sa.select(posts).where(posts.c.intent == intent))).one())

    async def at(self, reference: MessageReference) -> Post | None:
        rows = await self._connection.execute(sa.select(posts).where(posts.c.message == _message(reference)).limit(1))
        row = rows.one_or_none()
        return _post(row) if row is not None else None

    async def attempted(self, intent: str) -> None:
        await self._update(intent, attempted=True)

    async def posted(self, intent: str, reference: MessageReference, content_hash: str, claim: str = "") -> bool:
        known = {"reference": _REFERENCE.dump_python(reference, mode="json"), "message": _message(reference)}
        made = posts.update().where(posts.c.intent == intent).values(**known, content_hash=content_hash, claim=claim)
        return not (await self._connection.execute(made.returning(posts.c.withdrawn))).scalar_one()

    async def edited(self, intent: str, content_hash: str, claim: str = "") -> None:
        await self._update(intent, content_hash=content_hash, claim=claim)

    async def forget(self, intent: str) -> None:
        await self._update(intent, attempted=False, reference=sa.null(), message=None, content_hash="", claim="")

    async def withdraw(self, intent: str, place: Place) -> Post:
        await self.intend(intent, place)
        await self._update(intent, withdrawn=True)
        return await self.intend(intent, place)

    async def mark_stale(self, intent: str, place: Place, at: datetime, patience: timedelta) -> int | None:
        # Locked, so that a process that marks it current waits for this transaction; SQLite has only one writer.
        known = sa.select(posts.c.asked_at, posts.c.wishes).where(posts.c.intent == intent).with_for_update()
        post = (await self._connection.execute(known)).one_or_none()
        if post is None:
            await self.intend(intent, place)
            post = (await self._connection.execute(known)).one()
        is_asked = post.asked_at is not None and post.asked_at > at - patience
        await self._update(intent, asked_at=post.asked_at if is_asked else at, wishes=post.wishes + 1)
        return None if is_asked else post.wishes + 1

    async def pending_updates(self, intent: str) -> int:
        rows = await self._connection.execute(sa.select(posts.c.wishes).where(posts.c.intent == intent))
        return rows.scalar_one_or_none() or 0

    async def mark_current(self, intent: str, pending_updates: int) -> bool:
        as_wished = (
            posts.update().where(posts.c.intent == intent, posts.c.wishes == pending_updates).values(asked_at=None)
        )
        return (await self._connection.execute(as_wished)).rowcount > 0 or await self.pending_updates(
            intent
        ) == pending_updates

    async def _update(self, intent: str, **values: Any) -> None:
        await self._connection.execute(posts.update().where(posts.c.intent == intent).values(values))


def _post(row: sa.Row[Any]) -> Post:
    reference = _REFERENCE.validate_python(row.reference) if row.reference else None
    place = _PLACE.validate_python(row.place)
    return Post(row.intent, place, row.attempted, reference, row.content_hash, row.withdrawn, row.claim)


def _message(reference: MessageReference) -> str:
    """Return the key of a message, regardless of its thread."""
    return f"{reference.place.platform}:{reference.place.channel}:{reference.message_id}"


_KINDS: dict[str, type[Message]] = {kind.__name__: kind for kind in get_args(Message)}


class SqlDeadLetters:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def add(self, intent: str, place: Place, message: Message, reason: str) -> None:
        kind = type(message).__name__
        values = {
            "intent": intent,
            "place": _PLACE.dump_python(place, mode="json"),
            "kind": kind,
            "message": _message_type(kind).dump_python(message, mode="json"),
            "reason": reason,
            "at": datetime.now(UTC),
        }
        await upsert(self._connection, table, values)

    async def get(self, intent: str) -> DeadLetter | None:
        row = (await self._connection.execute(sa.select(table).where(table.c.intent == intent))).one_or_none()
        return _letter(row) if row is not None else None

    async def latest(self, limit: int) -> list[DeadLetter]:
        newest = sa.select(table).order_by(table.c.at.desc(), table.c.intent).limit(limit)
        return [_letter(row) for row in await self._connection.execute(newest)]

    async def count(self) -> int:
        return (await self._connection.execute(sa.select(sa.func.count()).select_from(table))).scalar_one()

    async def remove(self, intent: str) -> None:
        await self._connection.execute(table.delete().where(table.c.intent == intent))


def _letter(row: sa.Row[Any]) -> DeadLetter:
    message = _message_type(row.kind).validate_python(row.message)
    return DeadLetter(row.intent, _PLACE.validate_python(row.place), message, row.reason, row.at)


@cache
def _message_type(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(_KINDS[kind])
