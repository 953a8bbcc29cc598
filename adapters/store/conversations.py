"""Conversations in threads, in SQL."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.database import insert_if_absent
from adapters.store.tables import turns
from core.model.conversation import Place, Speaker, Turn

SEPARATOR = "\x1f"  # between the parts of a thread's key; no platform id contains it


class SqlConversations:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def add(self, key: str, place: Place, turn: Turn, at: datetime) -> None:
        values = {"key": key, "thread": _thread(place), "speaker": turn.speaker, "text": turn.text, "at": at}
        await insert_if_absent(self._connection, turns, values)

    async def forget(self, key: str) -> None:
        await self._connection.execute(turns.delete().where(turns.c.key == key))

    async def get(self, key: str, place: Place) -> Turn | None:
        rows = await self._connection.execute(sa.select(turns).where(turns.c.key == key))
        row = rows.one_or_none()
        is_there = row is not None and row.thread.rpartition(SEPARATOR)[0] == _channel(place)
        return Turn(Speaker(row.speaker), row.text) if row is not None and is_there else None

    async def history(self, place: Place, limit: int) -> tuple[Turn, ...]:
        if place.thread is None:
            return ()
        rows = await self._connection.execute(
            sa.select(turns.c.speaker, turns.c.text)
            .where(turns.c.thread == _thread(place))
            .order_by(turns.c.number.desc())
            .limit(limit)
        )
        return tuple(Turn(Speaker(row.speaker), row.text) for row in rows)[::-1]


def _thread(place: Place) -> str:
    return SEPARATOR.join((_channel(place), place.thread or ""))


def _channel(place: Place) -> str:
    return SEPARATOR.join((place.platform, place.workspace, place.channel))
