"""Conversations in SQL: settings of channels, threads, references to those of Teams, and messages of the local page."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adapters.console.messages import ConsoleMessage
from adapters.store.database import Records, insert_if_absent, outages_as, record_of, upsert
from adapters.store.incidents import channel_key
from adapters.store.tables import channel_settings, console_messages, teams_conversations, turns
from core.model.channel_settings import ChannelSettings
from core.model.conversation import Place, Speaker, Turn
from core.model.errors import ChatUnavailable, MessageNotFound, StoreUnavailable

WRITERS = 0x706C756D  # advisory lock that orders writers on PostgreSQL; SQLite has only one writer
SEPARATOR = "\x1f"  # between the parts of a thread's key; no platform id contains it


class SqlChannelSettings(Records):
    async def get(self, place: Place) -> ChannelSettings:
        of_channel = channel_settings.c.channel == channel_key(place)
        return await self._sql.scalar(sa.select(channel_settings.c.body).where(of_channel)) or ChannelSettings()

    async def save(self, place: Place, settings: ChannelSettings) -> None:
        await upsert(self._sql, channel_settings, channel=channel_key(place), body=settings)


class SqlConversations(Records):
    async def add(self, key: str, place: Place, turn: Turn, at: datetime) -> None:
        row = {"key": key, "thread": _thread(place), "speaker": turn.speaker, "text": turn.text, "at": at}
        await insert_if_absent(self._sql, turns, row)

    async def forget(self, key: str) -> None:
        await self._sql.execute(turns.delete().where(turns.c.key == key))

    async def get(self, key: str, place: Place) -> Turn | None:
        row = (await self._sql.execute(sa.select(turns).where(turns.c.key == key))).one_or_none()
        is_there = row is not None and row.thread.rpartition(SEPARATOR)[0] == _channel(place)
        return Turn(Speaker(row.speaker), row.text) if row is not None and is_there else None

    async def history(self, place: Place, limit: int) -> tuple[Turn, ...]:
        if place.thread is None:
            return ()
        newest = sa.select(turns).where(turns.c.thread == _thread(place)).order_by(turns.c.number.desc())
        return tuple(Turn(Speaker(row.speaker), row.text) for row in await self._sql.execute(newest.limit(limit)))[::-1]

    async def latest(self, place: Place, since: datetime, limit: int) -> tuple[Turn, ...]:
        here = turns.c.thread.startswith(f"{_channel(place)}{SEPARATOR}", autoescape=True) & (turns.c.at >= since)
        newest = sa.select(turns.c.thread).where(here).order_by(turns.c.number.desc()).limit(1)
        thread = await self._sql.scalar(newest)
        return (
            () if thread is None else await self.history(replace(place, thread=thread.rpartition(SEPARATOR)[2]), limit)
        )


def _channel(place: Place) -> str:
    return SEPARATOR.join((place.platform, place.workspace, place.channel))


def _thread(place: Place) -> str:
    return SEPARATOR.join((_channel(place), place.thread or ""))


class SqlTeamsConversations:
    """Implements `adapters.teams.references.ConversationReferences`. All methods raise StoreUnavailable."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def get(self, conversation_id: str) -> dict[str, Any] | None:
        query = sa.select(teams_conversations.c.reference).where(teams_conversations.c.id == conversation_id)
        async with self._transaction() as connection:
            return await connection.scalar(query)

    async def put(self, conversation_id: str, reference: dict[str, Any]) -> None:
        async with self._transaction() as connection:
            await upsert(connection, teams_conversations, id=conversation_id, reference=reference)

    async def beginning_with(self, prefix: str) -> list[dict[str, Any]]:
        wanted = teams_conversations.c.id.startswith(prefix, autoescape=True)
        query = sa.select(teams_conversations.c.reference).where(wanted).order_by(teams_conversations.c.id)
        async with self._transaction() as connection:
            return list(await connection.scalars(query))

    async def remove(self, conversation_id: str, team_id: str) -> None:
        gone = teams_conversations.c.id == conversation_id
        if team_id:
            gone |= teams_conversations.c.reference["team_id"].as_string() == team_id
        async with self._transaction() as connection:
            await connection.execute(sa.delete(teams_conversations).where(gone))

    @asynccontextmanager
    async def _transaction(self) -> AsyncGenerator[AsyncConnection]:
        with outages_as(StoreUnavailable):
            async with self._engine.begin() as connection:
                yield connection


_page = console_messages.c


class SqlConsoleMessages:
    """Implements `adapters.console.messages.ConsoleMessages`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def append(
        self, channel: str, thread: int | None, kind: str, payload: Mapping[str, Any], intent: str, at: datetime
    ) -> int:
        row = {"channel": channel, "thread": thread, "kind": kind, "payload": dict(payload), "intent": intent}
        async with self._writing() as connection:
            if (message_id := await connection.scalar(sa.select(_page.id).where(_page.intent == intent))) is not None:
                return message_id
            added = console_messages.insert().values(**row, at=at, revision=await _next_revision(connection))
            return (await connection.execute(added.returning(_page.id))).scalar_one()

    async def replace(self, message_id: int, kind: str, payload: Mapping[str, Any]) -> None:
        async with self._writing() as connection:
            changed = {"kind": kind, "payload": dict(payload), "revision": await _next_revision(connection)}
            replaced = await connection.execute(console_messages.update().where(_page.id == message_id).values(changed))
        if replaced.rowcount == 0:
            raise MessageNotFound(f"There is no message {message_id} on the local page.")

    async def get(self, message_id: int) -> ConsoleMessage | None:
        return next(iter(await self._read(sa.select(console_messages).where(_page.id == message_id))), None)

    async def find(self, intent: str) -> ConsoleMessage | None:
        return next(iter(await self._read(sa.select(console_messages).where(_page.intent == intent))), None)

    async def page(self, channel: str, limit: int, before: int | None = None) -> list[ConsoleMessage]:
        roots = sa.select(_page.id).where(_page.channel == channel, _page.thread.is_(None))
        if before is not None:
            roots = roots.where(_page.id < before)
        chosen = sa.select(roots.order_by(_page.id.desc()).limit(limit).subquery().c.id)
        in_them = _page.id.in_(chosen) | _page.thread.in_(chosen)
        return await self._read(sa.select(console_messages).where(in_them).order_by(_page.id))

    async def changed(self, channel: str, after: int, limit: int) -> list[ConsoleMessage]:
        later = sa.select(console_messages).where(_page.channel == channel, _page.revision > after)
        return await self._read(later.order_by(_page.revision).limit(limit))

    async def latest(self) -> Mapping[str, int]:
        newest = sa.select(_page.channel, sa.func.max(_page.id)).group_by(_page.channel)
        with outages_as(ChatUnavailable):
            async with self._engine.connect() as connection:
                return {row[0]: row[1] for row in await connection.execute(newest)}

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
    return (await connection.scalar(sa.select(sa.func.max(_page.revision))) or 0) + 1
