"""Quiet hours: hold incidents below a channel's threshold severity until the quiet hours end."""

from __future__ import annotations

from datetime import timedelta

from core.model.conversation import Place
from core.model.errors import QuietNow
from core.model.incident import Incident
from core.ports import Clock, Store


async def hold_incident(incident: Incident, place: Place, *, store: Store, clock: Clock) -> bool:
    """Hold the incident if the place's quiet hours apply to it now. Returns whether it is held."""
    async with store.transaction() as transaction:
        quiet = (await transaction.channel_settings.get(place)).quiet
        now = clock.now()
        if quiet is None or not quiet.hold(incident.severity, now):
            return False
        await transaction.held_incidents.hold(incident.id, place, now)
        return True


async def is_held(incident_id: str, *, store: Store, clock: Clock) -> bool:
    """Return whether the incident is held back, or is held for the channel that it is first posted in."""
    async with store.transaction() as transaction:
        incident = await transaction.incidents.get(incident_id)
        if incident is not None and incident.is_held_back(clock.now()):
            return True
        return incident is not None and incident.place in await transaction.held_incidents.places(incident_id)


async def is_anything_held(*, store: Store) -> bool:
    """Return whether any incident is held for any channel."""
    async with store.transaction() as transaction:
        return bool(await transaction.held_incidents.waiting())


async def wait_for_morning(place: Place, *, store: Store, clock: Clock) -> None:
    """Raise QuietNow during the place's quiet hours. For messages that are not urgent."""
    async with store.transaction() as transaction:
        quiet = (await transaction.channel_settings.get(place)).quiet
    now = clock.now()
    if quiet is not None and quiet.cover(now):
        left = max(quiet.left(now), timedelta(minutes=1))
        raise QuietNow(f"The channel {place.channel} is quiet from {quiet}.", left.total_seconds())
