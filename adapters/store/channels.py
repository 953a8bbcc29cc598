"""Channels in SQL: settings, what was said in threads, and references to the conversations of Teams."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.store.database import Records, insert_if_absent, upsert
from adapters.store.incidents import channel_key
from adapters.store.tables import channel_settings, teams_conversations, turns
from core.model.channel_settings import ChannelSettings
from core.model.conversation import Place, Speaker, Turn

SEPARATOR = "\x1f"  # between the parts of a thread's key; no platform id contains it


class SqlChannelSettings(Records):
    async def get(self, place: Place) -> ChannelSettings:
        of_channel = channel_settings.c.channel == channel_key(place)
        return await self._sql.scalar(sa.select(channel_settings.c.body).where(of_channel)) or ChannelSettings()

    async def save(self, place: Place, settings: ChannelSettings) -> None:
        await upsert(self._sql, channel_settings, channel=channel_key(place), body=settings)


class SqlConversations(Records):
    async def add(self, key: str, place: Place, turn: Turn, at: datetime) -> None:
        said = {"key": key, "thread": _thread(place), "speaker": turn.speaker, "text": turn.text, "at": at}
        await insert_if_absent(self._sql, turns, said)

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
        rows = await self._sql.execute(newest.limit(limit))
        return tuple(Turn(Speaker(row.speaker), row.text) for row in rows)[::-1]


def _channel(place: Place) -> str:
    return SEPARATOR.join((place.platform, place.workspace, place.channel))


def _thread(place: Place) -> str:
    return SEPARATOR.join((_channel(place), place.thread or ""))


class SqlTeamsConversations:
    """Implements `adapters.teams.references.ConversationReferences`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def get(self, conversation_id: str) -> dict[str, Any] | None:
        known = sa.select(teams_conversations.c.reference).where(teams_conversations.c.id == conversation_id)
        async with self._engine.connect() as connection:
            return await connection.scalar(known)

    async def put(self, conversation_id: str, reference: dict[str, Any]) -> None:
        async with self._engine.begin() as connection:
            await upsert(connection, teams_conversations, id=conversation_id, reference=reference)

    async def beginning_with(self, prefix: str) -> list[dict[str, Any]]:
        wanted = teams_conversations.c.id.startswith(prefix, autoescape=True)
        found = sa.select(teams_conversations.c.reference).where(wanted).order_by(teams_conversations.c.id)
        async with self._engine.connect() as connection:
            return list(await connection.scalars(found))

    async def remove(self, conversation_id: str, team_id: str) -> None:
        gone = teams_conversations.c.id == conversation_id
        if team_id:
            gone |= teams_conversations.c.reference["team_id"].as_string() == team_id
        async with self._engine.begin() as connection:
            await connection.execute(sa.delete(teams_conversations).where(gone))
