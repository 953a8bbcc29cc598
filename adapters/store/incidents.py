"""Incidents in SQL, with those that quiet hours hold back, and silences."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from adapters.store.database import Records, insert_if_absent, record_of, upsert
from adapters.store.tables import deliveries, held_incidents, incident_alerts, incidents, silences
from core.model.conversation import Place
from core.model.errors import Conflict
from core.model.incident import Incident, IncidentState
from core.model.silences import Silence
from core.ports import HeldIncident

_IS_OPEN = incidents.c.state == IncidentState.OPEN
# Every note has this field, possibly empty.
_IS_NOTED = incidents.c.body[("resolution", "root_cause")].as_string().is_not(None)
_OLDEST_FIRST = (incidents.c.opened_at, incidents.c.id)
_NEWEST_FIRST = (incidents.c.opened_at.desc(), incidents.c.id.desc())


class SqlIncidents(Records):
    async def known_deliveries(self, keys: Collection[str]) -> frozenset[str]:
        return frozenset(await self._list(sa.select(deliveries.c.key).where(deliveries.c.key.in_(keys))))

    async def add_deliveries(self, received: Mapping[str, datetime]) -> None:
        if received:
            await insert_if_absent(
                self._sql, deliveries, [{"key": key, "received_at": at} for key, at in received.items()]
            )

    async def get(self, incident_id: str) -> Incident | None:
        return await self._newest(incidents.c.id == incident_id)

    async def latest_for(self, source: str, group_key: str) -> Incident | None:
        of_group = (incidents.c.source == source, incidents.c.group_key == group_key)
        newest = await self._newest(*of_group)
        if newest is None or newest.state is IncidentState.OPEN:
            return newest
        return await self._newest(*of_group, _IS_OPEN) or newest

    async def in_thread(self, place: Place) -> Incident | None:
        return await self._newest(
            incidents.c.platform == place.platform,
            incidents.c.channel == place.channel,
            incidents.c.message_id == place.thread,
        )

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

    async def latest_open(self, limit: int) -> list[Incident]:
        return await self._list(_bodies(_IS_OPEN).order_by(*_NEWEST_FIRST).limit(limit))

    async def merged_into(self, incident_id: str, limit: int) -> list[Incident]:
        return await self._list(_bodies(incidents.c.leader == incident_id).order_by(*_OLDEST_FIRST).limit(limit))

    async def noted(self, limit: int) -> list[Incident]:
        return await self._list(_bodies(_IS_NOTED).order_by(*_NEWEST_FIRST).limit(limit))

    async def ended(self, limit: int, since: datetime | None = None) -> list[Incident]:
        query = _bodies(_IS_NOTED | (incidents.c.state == IncidentState.RESOLVED))
        if since is not None:
            query = query.where(incidents.c.changed_at >= since)
        return await self._list(query.order_by(*_NEWEST_FIRST).limit(limit))

    async def save(self, incident: Incident) -> None:
        message = incident.placement.message
        row = {
            "id": incident.id,
            "source": incident.source,
            "group_key": incident.group_key,
            "state": incident.state,
            "revision": incident.revision,
            "opened_at": incident.opened_at,
            "platform": message.place.platform if message else None,
            "channel": message.place.channel if message else None,
            "message_id": message.message_id if message else None,
            "service": incident.service,
            "leader": incident.part_of.incident_id if incident.part_of else None,
            "body": incident,
            "changed_at": datetime.now(UTC),  # not part of the incident's body
        }
        before = (incidents.c.id == incident.id, incidents.c.revision == incident.revision - 1)
        if incident.revision == 1:
            await self._insert(incident, row)
        elif not await self._count(incidents.update().where(*before).values(row)):
            raise Conflict(f"Incident {incident.id}: somebody else changed revision {incident.revision} first.")

    async def _insert(self, incident: Incident, row: Mapping[str, object]) -> None:
        try:
            async with self._sql.begin_nested():
                await self._sql.execute(incidents.insert().values(row))
        except IntegrityError as error:
            raise Conflict(f"Incident {incident.id}: another one is open for the same alert group.") from error
        fingerprints = sorted({alert.fingerprint for alert in incident.alerts})
        rows = [{"fingerprint": each, "incident_id": incident.id} for each in fingerprints]
        await self._sql.execute(incident_alerts.insert(), rows)

    async def _newest(self, *conditions: sa.ColumnElement[bool]) -> Incident | None:
        return await self._sql.scalar(_bodies(*conditions).order_by(incidents.c.opened_at.desc()).limit(1))


def _bodies(*conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return sa.select(incidents.c.body).where(*conditions)


class SqlHeldIncidents(Records):
    async def hold(self, incident_id: str, place: Place, at: datetime, storm: str = "") -> None:
        waits = sa.select(held_incidents.c.told).where(_held(incident_id, place), held_incidents.c.told.is_(False))
        if await self._sql.scalar(waits) is None:
            held = {"incident_id": incident_id, "channel": channel_key(place), "place": place}
            await upsert(self._sql, held_incidents, **held, told=False, held_at=at, storm=storm)

    async def places(self, incident_id: str) -> frozenset[Place]:
        of_incident = held_incidents.c.incident_id == incident_id
        return frozenset(await self._list(sa.select(held_incidents.c.place).where(of_incident)))

    async def waiting(self) -> list[HeldIncident]:
        unreported = (held_incidents.c.told.is_(False), held_incidents.c.storm == "")
        return await self._held(
            sa.select(held_incidents)
            .where(*unreported)
            .order_by(held_incidents.c.channel, held_incidents.c.incident_id)
        )

    async def listing(self, incident_id: str, place: Place) -> HeldIncident | None:
        listed = sa.select(held_incidents).where(_held(incident_id, place), held_incidents.c.storm != "")
        return next(iter(await self._held(listed)), None)

    async def listed(self, storm: str) -> list[HeldIncident]:
        in_order = (held_incidents.c.held_at, held_incidents.c.incident_id)
        return await self._held(sa.select(held_incidents).where(held_incidents.c.storm == storm).order_by(*in_order))

    async def storms(self, since: datetime) -> dict[str, Place]:
        recent = (held_incidents.c.storm != "", held_incidents.c.held_at >= since)
        rows = await self._held(sa.select(held_incidents).where(*recent).order_by(held_incidents.c.held_at))
        return {each.storm: each.place for each in rows}

    async def mark_reported(self, incident_id: str, place: Place) -> None:
        await self._sql.execute(held_incidents.update().where(_held(incident_id, place)).values(told=True))

    async def release(self, incident_id: str, place: Place) -> None:
        await self._sql.execute(held_incidents.delete().where(_held(incident_id, place)))

    async def _held(self, query: sa.Select[Any]) -> list[HeldIncident]:
        return [record_of(HeldIncident, row) for row in await self._sql.execute(query)]


def _held(incident_id: str, place: Place) -> sa.ColumnElement[bool]:
    return (held_incidents.c.incident_id == incident_id) & (held_incidents.c.channel == channel_key(place))


def channel_key(place: Place) -> str:
    """Return the channel's key on its platform, regardless of thread and workspace."""
    return f"{place.platform}:{place.channel}"


class SqlSilences(Records):
    async def save(self, silence: Silence) -> None:
        await upsert(self._sql, silences, id=silence.id, ends_at=silence.ends_at, body=silence)

    async def not_over(self, at: datetime) -> list[Silence]:
        lasting = sa.select(silences.c.body).where(silences.c.ends_at > at)
        return await self._list(lasting.order_by(silences.c.ends_at, silences.c.id))
