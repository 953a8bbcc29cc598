"""Channel settings and held incidents in SQL."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.database import upsert
from adapters.store.tables import channel_settings, held_incidents
from core.model.channel_settings import ChannelSettings
from core.model.conversation import Place
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
