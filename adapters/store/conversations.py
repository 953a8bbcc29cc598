"""Incidents and conversations in SQL, with settings of channels, silences, and messages of the local page."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adapters.console.messages import ConsoleMessage
from adapters.store.database import Records, insert_if_absent, record_of, transaction, upsert
from adapters.store.tables import (
    channel_settings,
    console_messages,
    deliveries,
    held_incidents,
    incident_alerts,
    incidents,
    silences,
    teams_conversations,
    turns,
)
from core.model.alert import Severity
from core.model.conversation import Place, Platform, Speaker, Turn
from core.model.errors import ChatUnavailable, Conflict, MessageNotFound
from core.model.incident import Incident, IncidentState
from core.model.silences import ChannelSettings, Silence
from core.ports import HeldIncident

WRITERS = 0x706C756D  # advisory lock that orders writers on PostgreSQL; SQLite has only one writer
SEPARATOR = "\x1f"  # between the parts of a thread's key; no platform id contains it


class SqlChannelSettings(Records):
    async def get(self, place: Place) -> ChannelSettings:
        return await self._first(channel_settings.c.body, channel=channel_key(place)) or ChannelSettings()

    async def save(self, place: Place, settings: ChannelSettings) -> None:
        await upsert(self._sql, channel_settings, channel=channel_key(place), body=settings)

    async def adopting(self) -> list[Place]:
        rows = await self._sql.execute(sa.select(channel_settings))
        keys = (row.channel.partition(":") for row in rows if row.body.adoption.reads)
        return [Place(Platform(platform), channel) for platform, _, channel in keys]


_NEWEST_TURNS = (
    sa.select(turns)
    .where(turns.c.thread == sa.bindparam("in_thread"), turns.c.key.not_in(sa.bindparam("besides", expanding=True)))
    .order_by(turns.c.number.desc())
    .limit(sa.bindparam("limit"))
)


class SqlConversations(Records):
    async def put(self, key: str, place: Place, turn: Turn, at: datetime) -> None:
        row = {"thread": _thread(place), "speaker": turn.speaker, "text": turn.text, "at": at}
        await upsert(self._sql, turns, key=key, **row)

    async def forget(self, key: str) -> None:
        await self._delete(turns, key=key)

    async def get(self, key: str, place: Place) -> Turn | None:
        row = (await self._rows(turns, key=key)).one_or_none()
        is_there = row is not None and row.thread.rpartition(SEPARATOR)[0] == _channel(place)
        return Turn(Speaker(row.speaker), row.text) if row is not None and is_there else None

    async def history(self, place: Place, limit: int, besides: Collection[str] = ()) -> tuple[Turn, ...]:
        if place.thread is None:
            return ()
        values = {"in_thread": _thread(place), "besides": list(besides), "limit": limit}
        newest = await self._sql.execute(_NEWEST_TURNS, values)
        return tuple(Turn(Speaker(row.speaker), row.text) for row in newest)[::-1]

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
    """Implements `adapters.teams.connector.ConversationReferences`. All methods raise StoreUnavailable."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def get(self, conversation_id: str) -> dict[str, Any] | None:
        query = sa.select(teams_conversations.c.reference).where(teams_conversations.c.id == conversation_id)
        async with transaction(self._engine) as connection:
            return await connection.scalar(query)

    async def put(self, conversation_id: str, reference: dict[str, Any]) -> None:
        async with transaction(self._engine) as connection:
            await upsert(connection, teams_conversations, id=conversation_id, reference=reference)

    async def beginning_with(self, prefix: str) -> list[dict[str, Any]]:
        wanted = teams_conversations.c.id.startswith(prefix, autoescape=True)
        query = sa.select(teams_conversations.c.reference).where(wanted).order_by(teams_conversations.c.id)
        async with transaction(self._engine) as connection:
            return list(await connection.scalars(query))

    async def remove(self, conversation_id: str, team_id: str) -> None:
        gone = teams_conversations.c.id == conversation_id
        if team_id:
            gone |= teams_conversations.c.reference["team_id"].as_string() == team_id
        async with transaction(self._engine) as connection:
            await connection.execute(sa.delete(teams_conversations).where(gone))


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
            added = console_messages.insert().values(**row, at=at, revision=_next_revision()).returning(_page.id)
            return (await connection.execute(added)).scalar_one()

    async def replace(self, message_id: int, kind: str, payload: Mapping[str, Any]) -> None:
        async with self._writing() as connection:
            changed = {"kind": kind, "payload": dict(payload), "revision": _next_revision()}
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

    async def _read(self, query: sa.Select[Any]) -> list[ConsoleMessage]:
        async with transaction(self._engine, ChatUnavailable) as connection:
            return [record_of(ConsoleMessage, row) for row in await connection.execute(query)]

    @asynccontextmanager
    async def _writing(self) -> AsyncGenerator[AsyncConnection]:
        async with transaction(self._engine, ChatUnavailable) as connection:
            if connection.dialect.name == "postgresql":
                await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(WRITERS)))
            yield connection


def _next_revision() -> sa.ScalarSelect[int]:
    return sa.select(sa.func.coalesce(sa.func.max(_page.revision), 0) + 1).correlate(None).scalar_subquery()


_IS_OPEN = incidents.c.state == IncidentState.OPEN
# Every note has this field, possibly empty.
_IS_NOTED = incidents.c.body[("resolution", "root_cause")].as_string().is_not(None)
_OLDEST_FIRST = (incidents.c.opened_at, incidents.c.id)
_NEWEST_FIRST = (incidents.c.opened_at.desc(), incidents.c.id.desc())
_OPEN_FIRST = (incidents.c.state != IncidentState.OPEN, *_NEWEST_FIRST)


def _bodies(*conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return sa.select(incidents.c.body).where(*conditions)


_LATEST_OPEN = _bodies(_IS_OPEN).order_by(*_NEWEST_FIRST)


class SqlIncidents(Records):
    async def known_deliveries(self, keys: Collection[str]) -> frozenset[str]:
        return frozenset(await self._list(sa.select(deliveries.c.key).where(deliveries.c.key.in_(keys))))

    async def add_deliveries(self, received: Mapping[str, datetime]) -> None:
        if received:
            await insert_if_absent(
                self._sql, deliveries, [{"key": key, "received_at": at} for key, at in received.items()]
            )

    async def get(self, incident_id: str) -> Incident | None:
        return await self._first(incidents.c.body, id=incident_id)

    async def latest_for(self, source: str, group_key: str) -> Incident | None:
        return await self._first(incidents.c.body, *_OPEN_FIRST, source=source, group_key=group_key)

    async def in_thread(self, place: Place) -> Incident | None:
        thread = {"platform": place.platform, "channel": place.channel, "message_id": place.thread}
        return await self._first(incidents.c.body, *_NEWEST_FIRST, **thread)

    async def recent(self, limit: int) -> list[Incident]:
        return await self._list(_bodies().order_by(*_NEWEST_FIRST).limit(limit))

    async def near(self, incident: Incident, services: frozenset[str], since: datetime, limit: int) -> list[Incident]:
        mine, its = incident_alerts.alias(), incident_alerts.alias()
        same_alert = sa.select(its.c.incident_id).where(
            its.c.fingerprint.in_(sa.select(mine.c.fingerprint).where(mine.c.incident_id == incident.id))
        )
        is_near: list[sa.ColumnElement[bool]] = [incidents.c.id.in_(same_alert), incidents.c.service.in_(services)]
        if incident.service:
            is_near.append((incidents.c.service == incident.service) & (incidents.c.source != incident.source))
        query = _bodies(_IS_OPEN, incidents.c.id != incident.id, incidents.c.opened_at >= since, sa.or_(*is_near))
        return await self._list(query.order_by(*_OLDEST_FIRST).limit(limit))

    async def open(self, limit: int, after: Incident | None = None) -> list[Incident]:
        query = _bodies(_IS_OPEN).order_by(*_OLDEST_FIRST).limit(limit)
        if after is not None:
            same_time = (incidents.c.opened_at == after.opened_at) & (incidents.c.id > after.id)
            query = query.where((incidents.c.opened_at > after.opened_at) | same_time)
        return await self._list(query)

    async def latest_open(self, limit: int, source: str = "") -> list[Incident]:
        of_source = incidents.c.source.startswith(source, autoescape=True) if source else sa.true()
        return await self._list(_LATEST_OPEN.where(of_source).limit(limit))

    async def merged_into(self, incident_id: str, limit: int) -> list[Incident]:
        return list((await self._rows(incidents.c.body, *_OLDEST_FIRST, limit=limit, leader=incident_id)).scalars())

    async def noted(self, limit: int) -> list[Incident]:
        return await self._list(_bodies(_IS_NOTED).order_by(*_NEWEST_FIRST).limit(limit))

    async def ended(self, limit: int, since: datetime | None = None) -> list[Incident]:
        query = _bodies(_IS_NOTED | (incidents.c.state == IncidentState.RESOLVED))
        if since is not None:
            query = query.where(incidents.c.changed_at >= since)
        return await self._list(query.order_by(*_NEWEST_FIRST).limit(limit))

    async def save(self, incident: Incident) -> None:
        thread = incident.placement.thread
        row = {
            "id": incident.id,
            "source": incident.source,
            "group_key": incident.group_key,
            "state": incident.state,
            "revision": incident.revision,
            "opened_at": incident.opened_at,
            "platform": thread.platform if thread else None,
            "channel": thread.channel if thread else None,
            "message_id": thread.thread if thread else None,
            "service": incident.service,
            "leader": incident.part_of.incident_id if incident.part_of else None,
            "body": incident,
            "changed_at": datetime.now(UTC),  # not part of the incident's body
        }
        if incident.revision == 1:
            await self._insert(incident, row)
        elif not await self._set(incidents, {"id": incident.id, "revision": incident.revision - 1}, **row):
            raise Conflict(f"Incident {incident.id}: somebody else changed revision {incident.revision} first.")

    async def _insert(self, incident: Incident, row: Mapping[str, object]) -> None:
        if not await insert_if_absent(self._sql, incidents, row):
            raise Conflict(f"Incident {incident.id}: another one is open for the same alert group.")
        fingerprints = sorted({alert.fingerprint for alert in incident.alerts})
        rows = [{"fingerprint": each, "incident_id": incident.id} for each in fingerprints]
        await self._sql.execute(incident_alerts.insert(), rows)


class SqlHeldIncidents(Records):
    async def hold(self, incident_id: str, place: Place, at: datetime, storm: str = "") -> None:
        if await self._first(held_incidents.c.told, **_held(incident_id, place)) is not False:
            held = {**_held(incident_id, place), "place": place}
            await upsert(self._sql, held_incidents, **held, told=False, held_at=at, storm=storm)

    async def places(self, incident_id: str) -> frozenset[Place]:
        return frozenset((await self._rows(held_incidents.c.place, incident_id=incident_id)).scalars())

    async def waiting(self) -> list[HeldIncident]:
        return await self._held(
            sa.select(held_incidents)
            .where(held_incidents.c.told.is_(False), held_incidents.c.storm == "")
            .order_by(held_incidents.c.channel, held_incidents.c.incident_id)
        )

    async def listing(self, incident_id: str, place: Place) -> HeldIncident | None:
        rows = await self._rows(held_incidents, **_held(incident_id, place))
        return next((record_of(HeldIncident, row) for row in rows if row.storm), None)

    async def latest(self, incident_id: str, place: Place) -> HeldIncident | None:
        here = sa.select(held_incidents).where(
            held_incidents.c.channel == channel_key(place), held_incidents.c.storm != ""
        )
        own, last = held_incidents.c.incident_id == incident_id, held_incidents.c.held_at.desc()
        # Each by an index, however many there are.
        either = sa.union_all(here.where(own), sa.select(here.order_by(last).limit(1).subquery()))
        return max(await self._held(either), key=lambda each: each.incident_id == incident_id, default=None)

    async def listed(self, storm: str) -> list[HeldIncident]:
        severity = sa.type_coerce(incidents.c.body, sa.JSON)["severity"].as_string()
        rank = sa.case({str(each): number for number, each in enumerate(Severity)}, value=severity, else_=len(Severity))
        in_order = (
            incidents.c.state != IncidentState.OPEN,
            rank,
            held_incidents.c.held_at,
            held_incidents.c.incident_id,
        )
        stored = held_incidents.outerjoin(incidents, incidents.c.id == held_incidents.c.incident_id)
        listed = sa.select(held_incidents).select_from(stored).where(held_incidents.c.storm == storm)
        return await self._held(listed.order_by(*in_order))

    async def storms(self, since: datetime) -> dict[str, Place]:
        recent = (held_incidents.c.storm != "", held_incidents.c.held_at >= since)
        one_of_each = sa.select(held_incidents.c.storm, sa.func.min(held_incidents.c.incident_id)).where(*recent)
        key = sa.tuple_(held_incidents.c.storm, held_incidents.c.incident_id)
        query = sa.select(held_incidents).where(key.in_(one_of_each.group_by(held_incidents.c.storm)))
        return {each.storm: each.place for each in await self._held(query.order_by(held_incidents.c.held_at))}

    async def mark_reported(self, incident_id: str, place: Place) -> None:
        await self._set(held_incidents, _held(incident_id, place), told=True)

    async def release(self, incident_id: str, place: Place) -> None:
        await self._delete(held_incidents, **_held(incident_id, place))

    async def _held(self, query: sa.Select[Any] | sa.CompoundSelect[Any]) -> list[HeldIncident]:
        return [record_of(HeldIncident, row) for row in await self._sql.execute(query)]


def _held(incident_id: str, place: Place) -> dict[str, Any]:
    return {"incident_id": incident_id, "channel": channel_key(place)}


def channel_key(place: Place) -> str:
    """Return the channel's key on its platform, regardless of thread and workspace."""
    return f"{place.platform}:{place.channel}"


_NOT_OVER = (
    sa.select(silences.c.body)
    .where(silences.c.ends_at > sa.bindparam("at"))
    .order_by(silences.c.ends_at, silences.c.id)
)


class SqlSilences(Records):
    async def save(self, silence: Silence) -> None:
        await upsert(self._sql, silences, id=silence.id, ends_at=silence.ends_at, body=silence)

    async def not_over(self, at: datetime) -> list[Silence]:
        return await self._list(_NOT_OVER, at=at)
