"""Dead letters in SQL."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any, get_args

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.database import upsert
from adapters.store.tables import dead_letters as table
from core.model.conversation import Place
from core.model.messages import Message
from core.ports import DeadLetter

_PLACE = TypeAdapter(Place)
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
            "message": _message(kind).dump_python(message, mode="json"),
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
    message = _message(row.kind).validate_python(row.message)
    return DeadLetter(row.intent, _PLACE.validate_python(row.place), message, row.reason, row.at)


@cache
def _message(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(_KINDS[kind])
