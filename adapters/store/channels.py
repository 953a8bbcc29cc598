"""Channels and conversations in SQL: settings, held incidents, silences, threads, and references to those of Teams."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adapters.store.database import insert_if_absent, upsert
from adapters.store.tables import channel_settings, held_incidents, teams_conversations, turns
from adapters.store.tables import silences as table
from core.model.channel_settings import ChannelSettings
from core.model.conversation import Place, Speaker, Turn
from core.model.silences import Silence
from core.ports import HeldIncident

_SETTINGS = TypeAdapter(ChannelSettings)
_PLACE = TypeAdapter(Place)


class SqlChannelSettings:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def get(self, place: Place) -> ChannelSettings:
        rows = await self._connection.execute(
            sa.select(channel_settings.c.body).where(channel_settings.c.channel == _channel(place))
        )
        body = rows.scalar_one_or_none()
        return _SETTINGS.validate_python(body) if body is not None else ChannelSettings()

    async def save(self, place: Place, settings: ChannelSettings) -> None:
        body = _SETTINGS.dump_python(settings, mode="json")
        await upsert(self._connection, channel_settings, {"channel": _channel(place), "body": body})


class SqlHeldIncidents:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def hold(self, incident_id: str, place: Place, at: datetime) -> None:
        waits = sa.select(held_incidents.c.told).where(_row(incident_id, place), held_incidents.c.told.is_(False))
        if (await self._connection.execute(waits)).first() is not None:
            return
        values = {
            "incident_id": incident_id,
            "channel": _channel(place),
            "place": _PLACE.dump_python(place, mode="json"),
            "told": False,
            "held_at": at,
        }
        await upsert(self._connection, held_incidents, values)

    async def places(self, incident_id: str) -> frozenset[Place]:
        rows = await self._connection.execute(
            sa.select(held_incidents.c.place).where(held_incidents.c.incident_id == incident_id)
        )
        return frozenset(_PLACE.validate_python(place) for place in rows.scalars())

    async def waiting(self) -> list[HeldIncident]:
        rows = await self._connection.execute(
            sa.select(held_incidents.c.incident_id, held_incidents.c.place, held_incidents.c.held_at)
            .where(held_incidents.c.told.is_(False))
            .order_by(held_incidents.c.channel, held_incidents.c.incident_id)
        )
        return [HeldIncident(row.incident_id, _PLACE.validate_python(row.place), row.held_at) for row in rows]

    async def mark_reported(self, incident_id: str, place: Place) -> None:
        await self._connection.execute(sa.update(held_incidents).where(_row(incident_id, place)).values(told=True))

    async def release(self, incident_id: str, place: Place) -> None:
        await self._connection.execute(sa.delete(held_incidents).where(_row(incident_id, place)))


def _row(incident_id: str, place: Place) -> sa.ColumnElement[bool]:
    return (held_incidents.c.incident_id == incident_id) & (held_incidents.c.channel == _channel(place))


def _channel(place: Place) -> str:
    """Return the channel's key on its platform, regardless of thread and workspace."""
    return f"{place.platform}:{place.channel}"


_BODY = TypeAdapter(Silence)


class SqlSilences:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def save(self, silence: Silence) -> None:
        body = _BODY.dump_python(silence, mode="json")
        await upsert(self._connection, table, {"id": silence.id, "ends_at": silence.ends_at, "body": body})

    async def not_over(self, at: datetime) -> list[Silence]:
        rows = await self._connection.execute(
            sa.select(table.c.body).where(table.c.ends_at > at).order_by(table.c.ends_at, table.c.id)
        )
        return [_BODY.validate_python(body) for body in rows.scalars()]


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
        is_there = row is not None and row.thread.rpartition(SEPARATOR)[0] == _thread_key(place)
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
    return SEPARATOR.join((_thread_key(place), place.thread or ""))


def _thread_key(place: Place) -> str:
    return SEPARATOR.join((place.platform, place.workspace, place.channel))


class SqlTeamsConversations:
    """Implements `adapters.teams.references.ConversationReferences`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def get(self, conversation_id: str) -> dict[str, Any] | None:
        async with self._engine.connect() as connection:
            row = await connection.execute(
                sa.select(teams_conversations.c.reference).where(teams_conversations.c.id == conversation_id)
            )
            return row.scalar_one_or_none()

    async def put(self, conversation_id: str, reference: dict[str, Any]) -> None:
        async with self._engine.begin() as connection:
            await upsert(connection, teams_conversations, {"id": conversation_id, "reference": reference})

    async def beginning_with(self, prefix: str) -> list[dict[str, Any]]:
        wanted = teams_conversations.c.id.startswith(prefix, autoescape=True)
        async with self._engine.connect() as connection:
            rows = await connection.execute(
                sa.select(teams_conversations.c.reference).where(wanted).order_by(teams_conversations.c.id)
            )
            return list(rows.scalars())

    async def remove(self, conversation_id: str, team_id: str) -> None:
        gone = teams_conversations.c.id == conversation_id
        if team_id:
            gone |= teams_conversations.c.reference["team_id"].as_string() == team_id
        async with self._engine.begin() as connection:
            await connection.execute(sa.delete(teams_conversations).where(gone))
