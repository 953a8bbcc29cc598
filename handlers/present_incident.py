"""The chat shows an incident as it is stored: one message, edited in place, and its details in the thread."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from core.errors import PlumblineError
from core.incident import Incident
from core.messages import IncidentDetails, IncidentMessage
from core.ports import Store
from handlers.post_message import Poster
from handlers.update_incident import update_incident


async def present_incident(incident_id: str, *, store: Store, poster: Poster) -> None:
    """Post the incident's message, or bring it up to date if it shows something older."""
    intent = f"incident:{incident_id}"
    async with poster.one_at_a_time(intent):
        incident = await _load(incident_id, store)
        reference = await poster.post_or_edit(intent, incident.place, IncidentMessage(incident), _shown(incident))
        if incident.message != reference:
            await update_incident(incident_id, lambda latest: replace(latest, message=reference), store)


async def present_details(incident_id: str, *, store: Store, poster: Poster) -> None:
    """Post the evidence, similar incidents and timeline into the thread of the incident's message."""
    incident = await _load(incident_id, store)
    if incident.message is None:
        raise PlumblineError(f"Incident {incident_id} has no message yet whose thread could hold its details.")
    thread = replace(incident.message.place, thread=incident.message.message_id)
    await poster.post_once(f"details:{incident_id}", thread, IncidentDetails(incident))


async def _load(incident_id: str, store: Store) -> Incident:
    async with store.transaction() as transaction:
        incident = await transaction.incidents.get(incident_id)
    if incident is None:
        raise PlumblineError(f"Incident {incident_id} does not exist (any more).")
    return incident


def _shown(incident: Incident) -> str:
    """Names what the message shows: differs exactly when the message would read differently."""
    visible = replace(incident, revision=0, message=None, updated_at=incident.opened_at)
    return hashlib.blake2b(repr(visible).encode(), digest_size=16).hexdigest()
