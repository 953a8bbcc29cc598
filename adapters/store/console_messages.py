"""Messages of the local page in SQL."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adapters.console.messages import ConsoleMessage
from adapters.store.database import outages_as, record_of
from adapters.store.tables import console_messages as table
from core.model.errors import ChatUnavailable, MessageNotFound

WRITERS = 0x706C756D  # advisory lock that orders writers on PostgreSQL; SQLite has only one writer


class SqlConsoleMessages:
    """Implements `adapters.console.messages.ConsoleMessages`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def append(
        self, channel: str, thread: int | None, kind: str, payload: Mapping[str, Any], intent: str, at: datetime
    ) -> int:
        async with self._writing() as connection:
            known = await connection.execute(sa.select(table.c.id).where(table.c.intent == intent))
            message_id = known.scalar_one_or_none()
            if message_id is not None:
                return message_id
            inserted = await connection.execute(
                table.insert()
                .returning(table.c.id)
                .values(
                    channel=channel,
                    thread=thread,
                    kind=kind,
                    payload=dict(payload),
                    intent=intent,
                    at=at,
                    revision=await _next_revision(connection),
                )
            )
            return inserted.scalar_one()

    async def replace(self, message_id: int, kind: str, payload: Mapping[str, Any]) -> None:
        async with self._writing() as connection:
            replaced = await connection.execute(
                table.update()
                .where(table.c.id == message_id)
                .values(kind=kind, payload=dict(payload), revision=await _next_revision(connection))
            )
        if replaced.rowcount == 0:
            raise MessageNotFound(f"There is no message {message_id} on the local page.")

    async def get(self, message_id: int) -> ConsoleMessage | None:
        return next(iter(await self._read(sa.select(table).where(table.c.id == message_id))), None)

    async def find(self, intent: str) -> ConsoleMessage | None:
        return next(iter(await self._read(sa.select(table).where(table.c.intent == intent))), None)

    async def page(self, channel: str, limit: int, before: int | None = None) -> list[ConsoleMessage]:
        roots = sa.select(table.c.id).where(table.c.channel == channel, table.c.thread.is_(None))
        if before is not None:
            roots = roots.where(table.c.id < before)
        latest = roots.order_by(table.c.id.desc()).limit(limit).subquery()
        chosen = sa.select(latest.c.id)
        return await self._read(
            sa.select(table).where(table.c.id.in_(chosen) | table.c.thread.in_(chosen)).order_by(table.c.id)
        )

    async def changed(self, channel: str, after: int, limit: int) -> list[ConsoleMessage]:
        return await self._read(
            sa.select(table)
            .where(table.c.channel == channel, table.c.revision > after)
            .order_by(table.c.revision)
            .limit(limit)
        )

    async def latest(self) -> Mapping[str, int]:
        with outages_as(ChatUnavailable):
            async with self._engine.connect() as connection:
                rows = await connection.execute(
                    sa.select(table.c.channel, sa.func.max(table.c.id)).group_by(table.c.channel)
                )
                return {row[0]: row[1] for row in rows}

    async def _read(self, query: sa.Select[Any]) -> list[ConsoleMessage]:
        with outages_as(ChatUnavailable):
            async with self._engine.connect() as connection:
                return [record_of(ConsoleMessage, row) for row in await connection.execute(query)]

    @asynccontextmanager
    async def _writing(self) -> AsyncGenerator[AsyncConnection]:
        with outages_as(ChatUnavailable):
            async with self._engine.begin() as connection:
                if connection.dialect.name == "postgresql":
                    await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(WRITERS)))
                yield connection


async def _next_revision(connection: AsyncConnection) -> int:
    highest = await connection.execute(sa.select(sa.func.coalesce(sa.func.max(table.c.revision), 0)))
    return highest.scalar_one() + 1
