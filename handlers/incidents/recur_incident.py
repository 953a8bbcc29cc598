"""Show an alert that fires again: with what was known the last time, and within a day in its old thread."""

from __future__ import annotations

from core.incidents.folding import share_an_audience
from core.incidents.readable import visible
from core.incidents.recurrence import old_thread, with_last
from core.model.conversation import MessageReference, Place
from core.model.errors import MessageNotFound
from core.model.incident import Incident
from core.model.messages import IncidentMessage
from handlers.common.ports import Ports


async def with_last_time(message: IncidentMessage, place: Place, incident: Incident, ports: Ports) -> IncidentMessage:
    """Return the message with what is known of the last incident of its alert, as far as the place may read it."""
    if incident.recurrence is None:
        return message
    async with ports.store.transaction() as transaction:
        last = await transaction.incidents.get(incident.recurrence.incident_id)
    if last is None:
        return message
    channels = await ports.chats.channels_of([incident, last])
    shared = [last] if share_an_audience(incident, last, channels) else []
    for seen in visible(shared, await ports.chats.audience_at(place), channels):
        there = seen.placement.message
        is_linked = there is not None and there.place.platform == place.platform
        url = await ports.poster.link(there) if there is not None and is_linked else ""
        thread = old_thread(incident, seen, ports.paging.joins_within)
        return with_last(message, seen, url, thread if place == incident.placement.place else None)
    return message


async def post_or_edit(intent: str, message: IncidentMessage, version: str, ports: Ports) -> MessageReference:
    """Post or edit the message in its old thread or, without one or after that was deleted, in its own place."""
    place = message.incident.placement.place
    if message.old_thread is not None:
        try:
            return await ports.poster.post_or_edit(intent, message.old_thread, message, version)
        except MessageNotFound:
            pass
    return await ports.poster.post_or_edit(intent, place, message, version)
