"""Incidents in SQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.database import insert_absent_rows
from adapters.store.tables import deliveries, incident_alerts, incidents
from core.model.conversation import Place
from core.model.errors import Conflict
from core.model.incident import Incident, IncidentState

_BODY = TypeAdapter(Incident)
_IS_NOTED = (
    incidents.c.body[("resolution", "root_cause")].as_string().is_not(None)
)  # every note has this field, possibly empty


class SqlIncidents:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def known_deliveries(self, keys: Collection[str]) -> frozenset[str]:
        found = await self._connection.execute(sa.select(deliveries.c.key).where(deliveries.c.key.in_(keys)))
        return frozenset(found.scalars())

    async def add_deliveries(self, received: Mapping[str, datetime]) -> None:
        rows = [{"key": key, "received_at": at} for key, at in received.items()]
        await insert_absent_rows(self._connection, deliveries, rows)

    async def get(self, incident_id: str) -> Incident | None:
        return await self._one(incidents.c.id == incident_id)

    async def latest_for(self, source: str, group_key: str) -> Incident | None:
        of_group = (incidents.c.source == source, incidents.c.group_key == group_key)
        newest = await self._one(*of_group)
        if newest is None or newest.state is IncidentState.OPEN:
            return newest
        return await self._one(*of_group, incidents.c.state == IncidentState.OPEN) or newest

    async def in_thread(self, place: Place) -> Incident | None:
        return await self._one(
            incidents.c.platform == place.platform,
            incidents.c.channel == place.channel,
            incidents.c.message_id == place.thread,
        )

    async def recent(self, limit: int) -> list[Incident]:
        rows = await self._connection.execute(
            sa.select(incidents.c.body).order_by(incidents.c.opened_at.desc(), incidents.c.id.desc()).limit(limit)
        )
        return [_BODY.validate_python(body) for body in rows.scalars()]

    async def near(self, incident: Incident, services: frozenset[str], since: datetime, limit: int) -> list[Incident]:
        mine, its = incident_alerts.alias(), incident_alerts.alias()
        same_alert = sa.select(its.c.incident_id).where(
            its.c.fingerprint.in_(sa.select(mine.c.fingerprint).where(mine.c.incident_id == incident.id))
        )
        same_service = (incidents.c.service == incident.service) & (incidents.c.source != incident.source)
        conditions: list[sa.ColumnElement[bool]] = [
            incidents.c.id.in_(same_alert),
            incidents.c.service.in_(services),
        ]
        if incident.service:
            conditions.append(same_service)
        return await self._all(
            incidents.c.state == IncidentState.OPEN,
            incidents.c.id != incident.id,
            incidents.c.opened_at >= since,
            sa.or_(*conditions),
            limit=limit,
        )

    async def open(self, limit: int, after: Incident | None = None) -> list[Incident]:
        is_open = incidents.c.state == IncidentState.OPEN
        if after is None:
            return await self._all(is_open, limit=limit)
        same_time = (incidents.c.opened_at == after.opened_at) & (incidents.c.id > after.id)
        return await self._all(is_open, sa.or_(incidents.c.opened_at > after.opened_at, same_time), limit=limit)

    async def latest_open(self, limit: int) -> list[Incident]:
        return await self._latest(incidents.c.state == IncidentState.OPEN, limit)

    async def merged_into(self, incident_id: str, limit: int) -> list[Incident]:
        return await self._all(incidents.c.leader == incident_id, limit=limit)

    async def noted(self, limit: int) -> list[Incident]:
        return await self._latest(_IS_NOTED, limit)

    async def ended(self, limit: int, since: datetime | None = None) -> list[Incident]:
        has_ended = sa.or_(_IS_NOTED, incidents.c.state == IncidentState.RESOLVED)
        return await self._latest(has_ended if since is None else (incidents.c.changed_at >= since) & has_ended, limit)

    async def save(self, incident: Incident) -> None:
        message = incident.message
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
            "leader": incident.absorbed.leader if incident.absorbed else None,
            "body": _BODY.dump_python(incident, mode="json"),
            "changed_at": datetime.now(UTC),  # not part of the incident's body
        }
        if incident.revision == 1:
            await self._insert(row)
            await self._keep_alerts(incident)
        else:
            await self._replace(row)

    async def _insert(self, row: dict[str, object]) -> None:
        try:
            async with self._connection.begin_nested():
                await self._connection.execute(incidents.insert().values(row))
        except IntegrityError as error:
            raise Conflict(f"Incident {row['id']}: another one is open for the same alert group.") from error

    async def _keep_alerts(self, incident: Incident) -> None:
        fingerprints = {alert.fingerprint for alert in incident.alerts}
        rows = [{"fingerprint": each, "incident_id": incident.id} for each in sorted(fingerprints)]
        await self._connection.execute(incident_alerts.insert(), rows)

    async def _replace(self, row: dict[str, object]) -> None:
        replaced = await self._connection.execute(
            incidents.update()
            .where(incidents.c.id == row["id"], incidents.c.revision == int(str(row["revision"])) - 1)
            .values(row)
        )
        if replaced.rowcount == 0:
            raise Conflict(f"Incident {row['id']}: somebody else changed revision {row['revision']} first.")

    async def _all(self, *conditions: sa.ColumnElement[bool], limit: int) -> list[Incident]:
        rows = await self._connection.execute(
            sa.select(incidents.c.body).where(*conditions).order_by(incidents.c.opened_at, incidents.c.id).limit(limit)
        )
        return [_BODY.validate_python(body) for body in rows.scalars()]

    async def _latest(self, condition: sa.ColumnElement[bool], limit: int) -> list[Incident]:
        rows = await self._connection.execute(
            sa.select(incidents.c.body)
            .where(condition)
            .order_by(incidents.c.opened_at.desc(), incidents.c.id.desc())
            .limit(limit)
        )
        return [_BODY.validate_python(body) for body in rows.scalars()]

    async def _one(self, *conditions: sa.ColumnElement[bool]) -> Incident | None:
        row = await self._connection.execute(
            sa.select(incidents.c.body).where(*conditions).order_by(incidents.c.opened_at.desc()).limit(1)
        )
        body = row.scalar_one_or_none()
        return _BODY.validate_python(body) if body is not None else None
