"""Stored incidents: load one, find that of a thread, and update one safely under concurrent writers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from core.model.conversation import MessageReference, Place
from core.model.errors import Conflict, PlumblineError
from core.model.incident import Incident
from core.ports import Store, Transaction

MAX_ATTEMPTS = 10  # at optimistic locking; every failed attempt means that another writer succeeded


def incident_intent(incident_id: str) -> str:
    """Return the posting intent of an incident's message."""
    return f"incident:{incident_id}"


async def stored_incident(incident_id: str, transaction: Transaction) -> Incident:
    """Return the stored incident. Raises PlumblineError if it does not exist."""
    incident = await transaction.incidents.get(incident_id)
    if incident is None:
        raise PlumblineError(f"Incident {incident_id} does not exist.")
    return incident


async def incident_of_thread(place: Place, transaction: Transaction) -> Incident | None:
    """Return the incident whose message, or a copy of it in another channel, is the root of the thread at `place`."""
    if place.thread is None:
        return None
    incident = await transaction.incidents.in_thread(place)
    if incident is not None:
        return incident
    post = await transaction.posts.at(MessageReference(replace(place, thread=None), place.thread))
    prefix = incident_intent("")
    if post is None or not post.intent.startswith(prefix):
        return None
    return await transaction.incidents.get(post.intent.removeprefix(prefix).partition("@")[0])


async def update_incident(
    incident_id: str, change: Callable[[Incident], Incident], store: Store, read: Incident | None = None
) -> Incident:
    """Apply `change` to the latest revision, and save the result as the next one. `read` is as in `change_incident`.

    An unchanged incident is not saved.
    """

    async def updated(latest: Incident, transaction: Transaction) -> Incident:
        changed = change(latest)
        return latest if changed == latest else await save_next(changed, latest, transaction)

    return await change_incident(incident_id, updated, store, read)


async def change_incident(
    incident_id: str,
    change: Callable[[Incident, Transaction], Awaitable[Incident]],
    store: Store,
    read: Incident | None = None,
) -> Incident:
    """Run `change`, which saves its own result, on the latest revision. Retries after a conflict.

    `read` is the incident as the caller read it, which is not read again. If somebody else saved it since, saving its
    next revision conflicts, and the latest one is read.
    """
    for _ in range(MAX_ATTEMPTS):
        try:
            async with store.transaction() as transaction:
                return await change(read or await stored_incident(incident_id, transaction), transaction)
        except Conflict:
            read = None
    raise Conflict(f"Incident {incident_id} is changed too often to save anything: {MAX_ATTEMPTS} attempts failed.")


async def save_next(changed: Incident, latest: Incident, transaction: Transaction) -> Incident:
    """Save an incident as the revision after `latest`."""
    saved = replace(changed, revision=latest.revision + 1)
    await transaction.incidents.save(saved)
    return saved
