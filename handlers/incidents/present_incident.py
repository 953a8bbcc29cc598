"""Show an incident in the chat: one message that is edited in place, and the details in its thread."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from core.incidents.filing import offered_actions
from core.incidents.grouping import share_an_audience
from core.incidents.incident_view import is_put_off
from core.model.badge import NO_POLICY, Policy
from core.model.conversation import Channel, MessageReference, Place
from core.model.errors import ChatBusy, ConfigurationError, MessageNotFound, PlumblineError, Unavailable, Undeliverable
from core.model.feedback import Feedback
from core.model.filing import FilingTarget
from core.model.incident import Incident, IncidentState
from core.model.messages import IncidentDetails, IncidentMessage, Notice, RelatedIncident
from core.ports import Clock, Store, Transaction
from handlers.incidents.open_incident import ask_to_present, incident_intent
from handlers.incidents.stored_incident import stored_incident
from handlers.incidents.update_incident import update_incident
from handlers.questions.post_message import Poster

MAX_PARTS = 500  # parts read for one incident
ROUND = 1.0  # seconds between edits while further changes arrive
FIRES_AGAIN = "The alert fires again. The incident is reopened."


Holds = Callable[[Incident, Place], Awaitable[bool]]
Link = Callable[[MessageReference], Awaitable[str]]


async def never_quiet(_incident: Incident, _place: Place) -> bool:
    """Return False: the place has no quiet hours."""
    return False


async def present_incident(
    incident_id: str,
    *,
    store: Store,
    poster: Poster,
    clock: Clock,
    policy: Policy = NO_POLICY,
    channels: Sequence[Channel] = (),
    holds: Holds = never_quiet,
    targets: Sequence[FilingTarget] = (),
) -> None:
    """Post the incident's message, or edit it if it is out of date.

    A silenced incident that was never posted stays unposted. Where `holds` returns True, an existing message is edited
    but none is posted. Raises ChatBusy if further changes arrived in the meantime, so that a storm causes successive
    edits and no queue.
    """
    intent = incident_intent(incident_id)
    async with poster.one_at_a_time(intent):
        async with store.transaction() as transaction:
            pending_updates = await transaction.posts.pending_updates(
                intent
            )  # read first, so that the incident read next is not older
            incident = await stored_incident(incident_id, transaction)
            parent, parts = await _related(incident, channels, transaction)
        if incident.silenced is None or incident.message is not None:
            message = await _put(incident, parent, parts, policy, poster.link)
            message = replace(message, filing=offered_actions(incident, targets, channels))
            await _show(message, holds, store=store, poster=poster, at=clock.now())
        async with store.transaction() as transaction:
            is_current = await transaction.posts.mark_current(intent, pending_updates)
        if not is_current:
            raise ChatBusy(f"More arrived while incident {incident_id} was shown.", ROUND)


async def _show(message: IncidentMessage, holds: Holds, *, store: Store, poster: Poster, at: datetime) -> None:
    """Show the message in all places, then raise the most temporary of the errors, if any."""
    shows = [partial(_show_in_its_place, message, holds, store=store, poster=poster, at=at)]
    shows += [
        partial(_copy_to, place, message, holds, store=store, poster=poster) for place in message.incident.also_in
    ]
    failures: list[PlumblineError] = []
    for show in shows:
        try:
            await show()
        except (Unavailable, Undeliverable, MessageNotFound, ConfigurationError) as error:
            failures.append(error)
    if failures:
        raise min(failures, key=lambda error: not isinstance(error, Unavailable))


async def _show_in_its_place(
    message: IncidentMessage, holds: Holds, *, store: Store, poster: Poster, at: datetime
) -> None:
    incident, version = message.incident, _shown(message)
    intent = incident_intent(incident.id)
    is_held = await holds(incident, incident.place)
    if await _may_be_posted(intent, incident, incident.place, store=store, poster=poster, is_held=is_held):
        reference = await poster.post_or_edit(intent, incident.place, message, version)
        if incident.message != reference:
            await update_incident(incident.id, lambda latest: replace(latest, message=reference), store)
            await _lead_to(incident, store, at)
        if _calls_again(incident) and not is_held:
            thread = replace(reference.place, thread=reference.message_id)  # an edit notifies nobody
            await poster.post_once(f"reopened:{incident.id}:{incident.reopened_count}", thread, Notice(FIRES_AGAIN))


async def _copy_to(place: Place, message: IncidentMessage, holds: Holds, *, store: Store, poster: Poster) -> None:
    incident, intent = message.incident, _copy(incident_intent(message.incident.id), place)
    is_held = await holds(incident, place)
    if await _may_be_posted(intent, incident, place, store=store, poster=poster, is_held=is_held):
        await poster.post_or_edit(intent, place, message, _shown(message))


def _calls_again(incident: Incident) -> bool:
    is_loud = not incident.flapping and incident.silenced is None and incident.absorbed is None
    return is_loud and incident.reopened_count > 0 and incident.state is IncidentState.OPEN


async def _lead_to(incident: Incident, store: Store, at: datetime) -> None:
    """Queue updates of the parts' messages, so that they link to the message that was just posted."""
    async with store.transaction() as transaction:
        for part in await transaction.incidents.merged_into(incident.id, MAX_PARTS):
            await ask_to_present(part, transaction, at)


async def parts_of(
    incident: Incident, channels: Sequence[Channel], transaction: Transaction, limit: int
) -> list[Incident]:
    """Return the direct and indirect parts of an incident that its readers may see, oldest first."""
    found: dict[str, Incident] = {}
    asked = [incident]
    while asked and len(found) < limit:
        below = [each for one in asked for each in await transaction.incidents.merged_into(one.id, limit)]
        asked = [each for each in below if each.id not in found and each.id != incident.id]
        found |= {each.id: each for each in asked}
    visible = [each for each in found.values() if share_an_audience(incident, each, channels)]
    return sorted(visible, key=lambda each: (each.opened_at, each.id))[:limit]


async def _may_be_posted(
    intent: str, incident: Incident, place: Place, *, store: Store, poster: Poster, is_held: bool
) -> bool:
    """Return whether the message is already posted in the place, or may be posted there."""
    async with store.transaction() as transaction:
        was_held = place in await transaction.held_incidents.places(incident.id)
    may_be_posted = not (is_held or (was_held and incident.state is IncidentState.RESOLVED))
    return may_be_posted or await poster.is_posted(intent, place)


async def present_details(incident_id: str, *, store: Store, poster: Poster) -> None:
    """Post the evidence, similar incidents and timeline in the incident's thread, unless it is held.

    Does nothing if the incident has no message (silenced, or refused by the chat), or was merged before it was
    investigated.
    """
    async with store.transaction() as transaction:
        incident = await stored_incident(incident_id, transaction)
        held = await transaction.held_incidents.places(incident_id)
    if is_put_off(incident) or (incident.message is None and incident.place not in held):
        return
    if incident.message is not None and incident.place not in held:
        thread = replace(incident.message.place, thread=incident.message.message_id)
        await poster.post_once(f"details:{incident_id}", thread, IncidentDetails(incident))
    for place in (place for place in incident.also_in if place not in held):
        copy = await poster.post_once(_copy(f"incident:{incident_id}", place), place, IncidentMessage(incident))
        thread = replace(copy.place, thread=copy.message_id)
        await poster.post_once(_copy(f"details:{incident_id}", place), thread, IncidentDetails(incident))


async def show_details(feedback: Feedback, *, store: Store, poster: Poster) -> None:
    """Post the current details after “Details” was pressed on a platform that cannot open a window."""
    if feedback.in_form:
        return
    async with store.transaction() as transaction:
        incident = await stored_incident(feedback.subject, transaction)
    await poster.post_once(f"details-asked:{feedback.id}", feedback.place, IncidentDetails(incident))


async def update_details(incident_id: str, *, store: Store, poster: Poster) -> None:
    """Update the details in the thread after people reassigned the incident or commented on its cause."""
    async with store.transaction() as transaction:
        incident = await stored_incident(incident_id, transaction)
        if not (incident.hops or incident.notes) or incident.message is None:
            return
        thread = replace(incident.message.place, thread=incident.message.message_id)
        post = await transaction.posts.intend(f"details:{incident_id}", thread)
    if post.reference is not None:
        seen = (incident.owner, incident.hops, incident.explanation)
        version = hashlib.blake2b(repr(seen).encode(), digest_size=16).hexdigest()
        await poster.post_or_edit(f"details:{incident_id}", thread, IncidentDetails(incident), version)


def _copy(intent: str, place: Place) -> str:
    """Return the intent of a copy in another place."""
    return f"{intent}@{place.platform}:{place.channel}"


def shown_incident(incident: Incident, policy: Policy) -> IncidentMessage:
    """Return the message of an incident, without related incidents."""
    owner = incident.owner.badge if incident.owner else None
    cause = incident.explanation.badge if incident.explanation else None
    return IncidentMessage(incident, policy.asks(owner), policy.asks(cause))


async def message_now(
    incident_id: str,
    *,
    policy: Policy,
    channels: Sequence[Channel],
    store: Store,
    link: Link,
    targets: Sequence[FilingTarget] = (),
) -> IncidentMessage | None:
    """Return an incident's message as it would be shown now; None if the incident is not stored."""
    async with store.transaction() as transaction:
        incident = await transaction.incidents.get(incident_id)
        if incident is None:
            return None
        parent, parts = await _related(incident, channels, transaction)
    message = await _put(incident, parent, parts, policy, link)
    return replace(message, filing=offered_actions(incident, targets, channels))


async def _put(
    incident: Incident, parent: Incident | None, parts: Sequence[Incident], policy: Policy, link: Link
) -> IncidentMessage:
    """Return the message with the related incidents."""
    return replace(
        shown_incident(incident, policy),
        leader=await _mention(parent, incident, link) if parent is not None else None,
        parts=tuple([await _mention(part, incident, link) for part in parts]),
    )


async def _mention(other: Incident, incident: Incident, link: Link) -> RelatedIncident:
    """Return a related incident, linked if both are on the same platform."""
    there = other.message
    url = await link(there) if there is not None and there.place.platform is incident.place.platform else ""
    return RelatedIncident(other.id, other.title, other.alert_count, other.state is IncidentState.OPEN, url)


async def _related(
    incident: Incident, channels: Sequence[Channel], transaction: Transaction
) -> tuple[Incident | None, list[Incident]]:
    parent = await transaction.incidents.get(incident.absorbed.leader) if incident.absorbed is not None else None
    visible = parent if parent is not None and share_an_audience(incident, parent, channels) else None
    return visible, await parts_of(incident, channels, transaction, MAX_PARTS)


def _shown(message: IncidentMessage) -> str:
    """Return a digest that changes exactly when the rendered message changes."""
    incident = message.incident
    seen = replace(incident, revision=0, message=None, updated_at=incident.opened_at, reopenings=())
    return hashlib.blake2b(
        repr((seen, message.leader, message.parts, message.filing)).encode(), digest_size=16
    ).hexdigest()
