"""Posts in SQL."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.database import insert_if_absent
from adapters.store.tables import posts
from core.model.conversation import MessageReference, Place
from core.ports import Post

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
