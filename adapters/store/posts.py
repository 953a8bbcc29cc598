"""The record of posts on SQL."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.database import insert_if_absent
from adapters.store.tables import posts
from core.conversation import MessageReference, Place
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
        }
        if await insert_if_absent(self._connection, posts, values):
            return Post(intent, place)
        row = (await self._connection.execute(sa.select(posts).where(posts.c.intent == intent))).one()
        reference = _REFERENCE.validate_python(row.reference) if row.reference else None
        return Post(
            intent, _PLACE.validate_python(row.place), row.attempted, reference, row.content_hash, row.withdrawn
        )

    async def attempted(self, intent: str) -> None:
        await self._update(intent, attempted=True)

    async def posted(self, intent: str, reference: MessageReference, content_hash: str) -> None:
        await self._update(intent, reference=_REFERENCE.dump_python(reference, mode="json"), content_hash=content_hash)

    async def edited(self, intent: str, content_hash: str) -> None:
        await self._update(intent, content_hash=content_hash)

    async def forget(self, intent: str) -> None:
        await self._update(intent, attempted=False, reference=sa.null(), content_hash="")

    async def withdraw(self, intent: str, place: Place) -> Post:
        await self.intend(intent, place)
        await self._update(intent, withdrawn=True)
        return await self.intend(intent, place)

    async def _update(self, intent: str, **values: Any) -> None:
        await self._connection.execute(posts.update().where(posts.c.intent == intent).values(values))
