"""What was said in threads, on SQL."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.database import insert_if_absent
from adapters.store.tables import turns
from core.conversation import Place, Speaker, Turn


class SqlConversations:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def add(self, key: str, place: Place, turn: Turn, at: datetime) -> None:
        values = {"key": key, "thread": _thread(place), "speaker": turn.speaker, "text": turn.text, "at": at}
        await insert_if_absent(self._connection, turns, values)

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
    return "\x1f".join((place.platform, place.workspace, place.channel, place.thread or ""))
