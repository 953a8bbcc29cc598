"""The audiences of an incident's places as they are now, and the part of the incident that each may read."""

from __future__ import annotations

import asyncio

from core.incidents.readable import readable
from core.model.conversation import Audience, Place, channel_audience, common_audience, with_outsiders
from core.model.incident import Incident
from handlers.common.ports import Ports


async def audience_at(place: Place, ports: Ports) -> Audience:
    """Return the audience of a place: its members as the chat reports them, with guests and outsiders."""
    look_up = ports.audiences.get(place.platform)
    return await look_up(place) if look_up is not None else channel_audience(place, ports.channels)


async def audience_of(incident: Incident, ports: Ports) -> Audience:
    """Return the audience for which an incident is investigated: that of all its places together."""
    return common_audience(await asyncio.gather(*(audience_at(place, ports) for place in incident.places)))


async def readable_at(place: Place, incident: Incident, ports: Ports) -> Incident:
    """Return the part of an incident that everybody in a place may read. Asks the chat only if that matters."""
    least = with_outsiders(channel_audience(place, ports.channels))
    if readable(incident, least, ports.channels) == incident:
        return incident
    return readable(incident, await audience_at(place, ports), ports.channels)
