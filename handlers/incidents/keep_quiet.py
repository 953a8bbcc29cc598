"""In a channel's quiet hours, an incident below its loud severity is not told there: it is held until they end."""

from __future__ import annotations

from datetime import timedelta

from core.model.conversation import Place
from core.model.errors import QuietNow
from core.model.incident import Incident
from core.ports import Clock, Store


async def hold_incident(incident: Incident, place: Place, *, store: Store, clock: Clock) -> bool:
    """Return whether the place must not be told of the incident now; if so, hold it until the quiet hours end."""
    async with store.transaction() as transaction:
        quiet = (await transaction.channel_settings.get(place)).quiet
        now = clock.now()
        if quiet is None or not quiet.hold(incident.severity, now):
            return False
        await transaction.held_incidents.hold(incident.id, place, now)
        return True


async def is_held(incident_id: str, *, store: Store) -> bool:
    """Return whether the channel that the incident is posted in first is not to be told of it."""
    async with store.transaction() as transaction:
        incident = await transaction.incidents.get(incident_id)
        return incident is not None and incident.place in await transaction.held_incidents.places(incident_id)


async def is_anything_held(*, store: Store) -> bool:
    """Return whether some channel is still to be told of an incident."""
    async with store.transaction() as transaction:
        return bool(await transaction.held_incidents.waiting())


async def wait_for_morning(place: Place, *, store: Store, clock: Clock) -> None:
    """Raises QuietNow while the place's quiet hours last: for what is said to nobody in particular, and has time."""
    async with store.transaction() as transaction:
        quiet = (await transaction.channel_settings.get(place)).quiet
    now = clock.now()
    if quiet is not None and quiet.cover(now):
        left = max(quiet.left(now), timedelta(minutes=1))
        raise QuietNow(f"The channel {place.channel} is quiet from {quiet}.", left.total_seconds())
