"""Stored incidents and presses: load one, find that of a thread, and update one safely under concurrent writers.

A press of “Stop” is stored under a key of its own, like every press. So whoever accepts it, the replica for which a language
model works finds it, and ends that work within a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import TypeAdapter

from core.model.audit import Act, AuditEntry, audit_entry
from core.model.conversation import MessageReference, Place
from core.model.errors import Conflict, PlumblineError, StoreUnavailable
from core.model.incident import Incident
from core.model.message_view import Feedback
from core.model.messages import ButtonAction
from core.ports import Store, Task, Transaction

MAX_ATTEMPTS = 10  # at optimistic locking; every failed attempt means that another writer succeeded


def incident_intent(incident_id: str) -> str:
    """Return the posting intent of an incident's message."""
    return f"incident:{incident_id}"


def intent_at(place: Place, incident: Incident, kind: str = "incident") -> str:
    """Return the posting intent of an incident's message, or of its details, in one of its places."""
    copied = "" if place == incident.placement.place else f"@{place.platform}:{place.channel}"
    return f"{kind}:{incident.id}{copied}"


async def stored_incident(incident_id: str, transaction: Transaction) -> Incident:
    """Return the stored incident. Raises PlumblineError if it does not exist."""
    incident = await transaction.incidents.get(incident_id)
    if incident is None:
        raise PlumblineError(f"Incident {incident_id} does not exist.")
    return incident


async def read_incident(incident_id: str, store: Store) -> Incident:
    """Return the stored incident, read on its own. Raises PlumblineError if it does not exist."""
    async with store.transaction() as transaction:
        return await stored_incident(incident_id, transaction)


async def find_incident(incident_id: str, store: Store) -> Incident | None:
    """Return the incident, read on its own; None if it is not stored, such as pasted text."""
    async with store.transaction() as transaction:
        return await transaction.incidents.get(incident_id)


async def find_in_thread(place: Place, store: Store) -> Incident | None:
    """Return the incident of a thread, read on its own. See `incident_of_thread`."""
    async with store.transaction() as transaction:
        return await incident_of_thread(place, transaction)


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


FEEDBACK = "record_feedback"
FEEDBACK_EVENT = TypeAdapter(Feedback)


def pressed(feedback: Feedback) -> tuple[Task, AuditEntry]:
    """Return what is stored of a press. One of “Stop” has the key for which the working replica looks."""
    key = stop_key(feedback.subject) if feedback.verdict is ButtonAction.STOP else feedback.id
    entry = audit_entry(
        f"pressed:{feedback.id}",
        feedback.at,
        Act.PRESSED,
        feedback.person,
        feedback.subject,
        place=feedback.place,
        detail=feedback.verdict,
    )
    return Task(key, FEEDBACK, feedback.subject, FEEDBACK_EVENT.dump_python(feedback, mode="json")), entry


LOOK = 0.5  # seconds between two looks for a press

T = TypeVar("T")


def stop_key(stop_id: str) -> str:
    """Return the key of the task that stops a model's work."""
    return f"stop:{stop_id}"


async def unless_stopped(work: Coroutine[Any, Any, T], stop_id: str, store: Store) -> T | None:
    """Return the result of the work; None if somebody stopped it, which cancels the work. Raises what the work raises."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(_stopped(stop_id, store))
    try:
        await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (working, stopping):
            task.cancel()
        await asyncio.wait([working, stopping])


async def _stopped(stop_id: str, store: Store) -> None:
    """Wait until somebody has pressed “Stop”."""
    while True:
        await asyncio.sleep(LOOK)
        with suppress(StoreUnavailable):  # an outage is no press
            async with store.transaction() as transaction:
                if await transaction.tasks.is_known(stop_key(stop_id)):
                    return
