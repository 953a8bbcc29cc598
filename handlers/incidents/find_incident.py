"""Look-up of the incident that a thread belongs to."""

from __future__ import annotations

from dataclasses import replace

from core.model.conversation import MessageReference, Place
from core.model.incident import Incident
from core.ports import Transaction
from handlers.incidents.open_incident import incident_intent


async def incident_of_thread(place: Place, transaction: Transaction) -> Incident | None:
    """Return the incident whose message, or a copy of it in another channel, is the root of the thread at `place`."""
    if place.thread is None:
        return None
    found = await transaction.incidents.in_thread(place)
    if found is not None:
        return found
    post = await transaction.posts.at(MessageReference(replace(place, thread=None), place.thread))
    prefix = incident_intent("")
    if post is None or not post.intent.startswith(prefix):
        return None
    return await transaction.incidents.get(post.intent.removeprefix(prefix).partition("@")[0])
