"""Show an incident in the chat: one message that is edited in place, and the details in its thread."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from core.incidents.folding import known_before, old_thread, share_an_audience
from core.incidents.incident_view import is_put_off
from core.incidents.postmortem import draft_postmortem, offered_actions, offers_postmortem, postmortem_address
from core.incidents.readable import readable, visible
from core.model.badge import Policy
from core.model.conversation import Audience, Channel, MessageReference, Place
from core.model.errors import ChatBusy, ConfigurationError, MessageNotFound, PlumblineError, Unavailable, Undeliverable
from core.model.incident import FilingTarget, Incident, IncidentState, Stage
from core.model.message_view import Feedback
from core.model.messages import IncidentDetails, IncidentMessage, Notice, RelatedIncident
from core.ports import Store, Transaction
from handlers.common.ports import Chats, Ports
from handlers.common.post_message import NEVER
from handlers.common.stored_incident import change_incident, incident_intent, save_next, stored_incident
from handlers.incidents.adopt_alerts import may_be_posted_too, seconds_to_wait
from handlers.incidents.arrange_incident import arrange_incident, root_of
from handlers.incidents.hold_incident import admit_message
from handlers.incidents.open_incident import ask_to_present, present_task
from handlers.incidents.ping_owner import ping_owner
from handlers.incidents.suggestions import judge_page

MAX_PARTS = 500  # parts read for one incident
ROUND = 1.0  # seconds between edits while further changes arrive
FIRES_AGAIN = "The alert is firing again, so I reopened the incident."


Link = Callable[[MessageReference], Awaitable[str]]
Held = tuple[Incident, frozenset[Place]]  # an incident, and the places in which it is held


@dataclass(frozen=True, slots=True)
class Related:
    """Incidents of which another one's message tells: its parent, the last one of its alert, and its parts."""

    parent: Incident | None
    last: Incident | None
    parts: Sequence[Incident]

    @property
    def all(self) -> list[Incident]:
        return [each for each in (self.parent, self.last, *self.parts) if each is not None]


async def update_chats(incident_id: str, ports: Ports, *, is_step: bool = True) -> None:
    """Update the chats: the message, a ping if the policy asks for one, and a postmortem once it is cured.

    As a step of an investigation, it does not wait for a busy chat: a task of its own does. Raises Undeliverable or
    MessageNotFound, after all of that, if one of its places refuses the message.
    """
    refused: PlumblineError | None = None
    try:
        incident, held = await _arrange_and_present(incident_id, ports)
    except ChatBusy:
        if is_step and await _is_updated_later(incident_id, ports.store):
            return
        raise
    except (Undeliverable, MessageNotFound) as error:
        refused = error
        async with ports.store.transaction() as transaction:
            incident, held = await _as_held(incident_id, transaction)
    if incident.placement.place not in held and not incident.is_held_back(ports.clock.now()):
        await ping_owner(incident, ports)
        await update_details(incident, ports)
        await link_postmortem(incident, ports)
    if refused is not None:
        raise refused


async def present_meanwhile(incident_id: str, ports: Ports) -> None:
    """Update the message, ignoring chat errors: the next step shows more, and reports errors."""
    with suppress(Unavailable, Undeliverable, MessageNotFound):
        await _arrange_and_present(incident_id, ports)


async def _arrange_and_present(incident_id: str, ports: Ports) -> Held:
    async with ports.store.transaction() as transaction:
        incident = await stored_incident(incident_id, transaction)
    arranged = await arrange_incident(incident, ports)
    if arranged.part_of is None:
        await judge_page(arranged, ports)
    return await present_incident(incident_id, ports)


async def _as_held(incident_id: str, transaction: Transaction) -> Held:
    return await stored_incident(incident_id, transaction), await transaction.held_incidents.places(incident_id)


async def _is_updated_later(incident_id: str, store: Store) -> bool:
    """Queue an update that waits for the chat, if a posted incident is still being investigated. Returns whether it is."""
    async with store.transaction() as transaction:
        incident = await stored_incident(incident_id, transaction)
        is_alone = incident.silenced is None and incident.part_of is None
        if incident.placement.message is None or incident.stage is Stage.DONE or not is_alone:
            return False
        pending_updates = await transaction.posts.pending_updates(incident_intent(incident_id))
        task = present_task(incident)
        await transaction.tasks.add(replace(task, key=f"{task.key}:{pending_updates}:later"))
    return True


async def present_incident(incident_id: str, ports: Ports) -> Held:
    """Post the incident's message, or edit it if it is out of date. Returns the incident as it is then.

    A silenced incident that was never posted stays unposted, and so does a part of another one, whose message tells of
    it in the same places. During quiet hours, or while it is held back, an existing message is edited but none is
    posted. Raises ChatBusy if further changes arrived in the meantime, so that a storm causes successive edits and no
    queue; then Undeliverable or MessageNotFound if a place takes no message.
    """
    intent = incident_intent(incident_id)
    refused: PlumblineError | None = None
    async with ports.poster.one_at_a_time(intent):
        async with ports.store.transaction() as transaction:
            # Read first, so that the incident that is read next is not older.
            pending_updates = await transaction.posts.pending_updates(intent)
            incident = await stored_incident(incident_id, transaction)
            related = await _related(incident, transaction)
            whole = await root_of(incident, transaction) if incident.part_of is not None else incident
            if whole is not incident:
                await ask_to_present(whole, transaction, ports.clock.now())  # it counts its parts
            awaits_bot = await may_be_posted_too(incident, ports, transaction)
        is_told = whole is not incident and set(incident.placement.places) <= set(whole.placement.places)
        is_put_away = incident.placement.message is None and (is_told or incident.silenced is not None)
        if awaits_bot and not is_put_away and (seconds := await seconds_to_wait(incident, ports)):
            if incident.stage is Stage.DONE:
                raise ChatBusy(f"Incident {incident_id} waits for the message of the bot that posts the same.", seconds)
        elif not is_put_away:
            try:
                await _show(incident, related, ports)
            except (Undeliverable, MessageNotFound) as error:
                refused = error
        async with ports.store.transaction() as transaction:
            is_current = await transaction.posts.mark_current(intent, pending_updates)
            # Read again: while the chat took its time, somebody may have taken the incident, or reassigned it.
            now = await _as_held(incident_id, transaction)
        if not is_current:
            raise ChatBusy(f"More updates arrived while incident {incident_id} was being shown.", ROUND)
    if refused is not None:
        raise refused
    return now


async def _show(incident: Incident, related: Related, ports: Ports) -> None:
    """Show the message in all places, to each what it may read, then raise the most temporary of the errors, if any."""
    failures: list[PlumblineError] = []
    others = related.all
    # As they are now, if what is related or may be filed depends on them.
    channels = await ports.chats.channels_of([incident, *others] if others or ports.filing.targets else [])
    for place in incident.placement.places:
        try:
            message = await _message_at(place, incident, related, channels, ports)
            shown = _show_in_its_place if place == incident.placement.place else partial(_show_copy, place)
            await shown(message, ports)
        except ConfigurationError as error:  # the chat was taken out of the configuration
            failures.append(Undeliverable(str(error)))
        except (Unavailable, Undeliverable, MessageNotFound) as error:
            failures.append(error)
    if failures:
        raise min(failures, key=lambda error: not isinstance(error, Unavailable))


async def _message_at(
    place: Place, incident: Incident, related: Related, channels: Sequence[Channel], ports: Ports
) -> IncidentMessage:
    seen = await ports.chats.readable_at(place, incident)
    if related.all:
        related = _visible_to(await ports.chats.audience_at(place), incident, related, channels)
    message = await _with_related(seen, related, ports.paging.policy, ports.poster.link)
    is_main = place == incident.placement.place
    thread = old_thread(incident, related.last, ports.paging.joins_within) if is_main else None
    return replace(message, filing=offered_actions(incident, ports.filing.targets, channels), old_thread=thread)


async def _show_in_its_place(message: IncidentMessage, ports: Ports) -> None:
    incident, intent = message.incident, incident_intent(message.incident.id)
    is_admitted, waits = await admit_message(intent, incident, incident.placement.place, ports)
    if not is_admitted:
        return
    reference = await _post_or_edit(intent, message, ports)
    if incident.placement.message != reference:
        # `incident` is only the part of it that the place may read.
        await change_incident(incident.id, partial(_placed, reference, ports.clock.now()), ports.store)
    is_again = incident.state is IncidentState.OPEN and incident.reopened_count > 0
    if is_again and not (waits or incident.flapping or incident.silenced is not None or incident.part_of is not None):
        again = f"reopened:{incident.id}:{incident.reopened_count}"
        await ports.poster.post_once(again, reference.thread, Notice(FIRES_AGAIN))  # an edit notifies nobody


async def _post_or_edit(intent: str, message: IncidentMessage, ports: Ports) -> MessageReference:
    """Post or edit the message in its old thread or, without one or after that was deleted, in its own place."""
    version = _version_of(message)
    if message.old_thread is not None:
        with suppress(MessageNotFound):
            return await ports.poster.post_or_edit(intent, message.old_thread, message, version)
    return await ports.poster.post_or_edit(intent, message.incident.placement.place, message, version)


async def _show_copy(place: Place, message: IncidentMessage, ports: Ports) -> None:
    incident, intent = message.incident, copy_intent(incident_intent(message.incident.id), place)
    is_admitted, _ = await admit_message(intent, incident, place, ports)
    if is_admitted:
        await ports.poster.post_or_edit(intent, place, message, _version_of(message))


async def _placed(reference: MessageReference, now: datetime, latest: Incident, transaction: Transaction) -> Incident:
    """Save the message that was just posted, and queue updates of the parts' messages, so that they link to it."""
    for part in await transaction.incidents.merged_into(latest.id, MAX_PARTS):
        if part.placement.message is not None:
            await ask_to_present(part, transaction, now)
    return await save_next(latest.with_placement(message=reference), latest, transaction)


async def parts_of(incident: Incident, transaction: Transaction, limit: int) -> list[Incident]:
    """Return the direct and indirect parts of an incident, oldest first, regardless of readers."""
    parts: dict[str, Incident] = {}
    frontier = [incident]
    while frontier and len(parts) < limit:
        below = [each for one in frontier for each in await transaction.incidents.merged_into(one.id, limit)]
        frontier = [each for each in below if each.id not in parts and each.id != incident.id]
        parts |= {each.id: each for each in frontier}
    return sorted(parts.values(), key=lambda each: (each.opened_at, each.id))[:limit]


async def present_details(incident_id: str, ports: Ports) -> None:
    """Post the evidence, similar incidents and timeline in the incident's thread, unless it is held.

    Does nothing if the incident has no message (silenced, or refused by the chat), or was merged before it was
    investigated. Raises Undeliverable, after all places were tried, if one takes no message.
    """
    refused: PlumblineError | None = None
    async with ports.store.transaction() as transaction:
        incident = await stored_incident(incident_id, transaction)
        held = await transaction.held_incidents.places(incident_id)
    if is_put_off(incident) or (incident.placement.message is None and incident.placement.place not in held):
        return
    for place in (each for each in incident.placement.places if each not in held):
        try:
            if place != incident.placement.place:
                intent, details = (copy_intent(f"{kind}:{incident_id}", place) for kind in ("incident", "details"))
                message = IncidentMessage(await ports.chats.readable_at(place, incident))
                root = await ports.poster.post_once(intent, place, message)
            elif incident.placement.message is not None:
                root, details = incident.placement.message, f"details:{incident_id}"
            else:
                continue
            seen = await ports.chats.readable_at(place, incident)
            await ports.poster.post_once(details, root.thread, IncidentDetails(seen))
        except NEVER as error:
            refused = error
    if refused is not None:
        raise Undeliverable(str(refused)) from refused


async def show_details(feedback: Feedback, ports: Ports) -> None:
    """Post the current details after “Details” was pressed on a platform that cannot open a window."""
    if feedback.in_form:
        return
    async with ports.store.transaction() as transaction:
        incident = await stored_incident(feedback.subject, transaction)
    details = IncidentDetails(readable(incident, feedback.audience, await ports.chats.channels_of([incident])))
    await ports.poster.post_once(f"details-asked:{feedback.id}", feedback.place, details)


async def update_details(incident: Incident, ports: Ports) -> None:
    """Update the details in each thread after people reassigned the incident or commented on its cause."""
    if not (incident.hops or incident.notes) or incident.placement.message is None:
        return
    intent = incident_intent(incident.id)
    async with ports.store.transaction() as transaction:
        # Read again: while the owner was called, somebody may have changed it, and the details may show that already.
        incident = await stored_incident(incident.id, transaction)
        copies = [
            (place, (await transaction.posts.intend(copy_intent(intent, place), place)).reference)
            for place in incident.placement.also_in
        ]
    for place, root in ((incident.placement.place, incident.placement.message), *copies):
        if root is not None:
            await _update_details_at(place, root, incident, ports)


async def _update_details_at(place: Place, root: MessageReference, incident: Incident, ports: Ports) -> None:
    intent = (
        f"details:{incident.id}" if place == incident.placement.place else copy_intent(f"details:{incident.id}", place)
    )
    if await ports.poster.is_posted(intent):
        seen = await ports.chats.readable_at(place, incident)
        shown = repr((seen.findings.owner, seen.hops, seen.findings.explanation))
        version = hashlib.blake2b(shown.encode(), digest_size=16).hexdigest()
        await ports.poster.post_or_edit(intent, root.thread, IncidentDetails(seen), version)


def copy_intent(intent: str, place: Place) -> str:
    """Return the intent of a copy in another place."""
    return f"{intent}@{place.platform}:{place.channel}"


async def message_now(
    incident_id: str,
    place: Place,
    *,
    policy: Policy,
    chats: Chats,
    store: Store,
    link: Link,
    targets: Sequence[FilingTarget] = (),
) -> IncidentMessage | None:
    """Return an incident's message as it would be shown now in a place; None if the incident is not stored."""
    async with store.transaction() as transaction:
        incident = await transaction.incidents.get(incident_id)
        if incident is None:
            return None
        related = await _related(incident, transaction)
    audience, channels = await asyncio.gather(chats.audience_at(place), chats.channels_of([incident, *related.all]))
    seen = readable(incident, audience, channels)
    message = await _with_related(seen, _visible_to(audience, incident, related, channels), policy, link)
    return replace(message, filing=offered_actions(incident, targets, channels))


def _visible_to(audience: Audience, incident: Incident, related: Related, channels: Sequence[Channel]) -> Related:
    """Return the related incidents that may be told in the message of this one, to this audience."""
    shared = [each for each in related.all if share_an_audience(incident, each, channels)]
    seen = {each.id: each for each in visible(shared, audience, channels)}
    parent, last = (seen.get(each.id) if each is not None else None for each in (related.parent, related.last))
    return Related(parent, last, [seen[part.id] for part in related.parts if part.id in seen])


async def _with_related(incident: Incident, related: Related, policy: Policy, link: Link) -> IncidentMessage:
    """Return the message with the related incidents."""
    owner, explanation = incident.findings.owner, incident.findings.explanation
    parent, last = related.parent, related.last
    return IncidentMessage(
        incident,
        policy.asks(owner.badge if owner is not None else None),
        policy.asks(explanation.badge if explanation is not None else None),
        leader=await _linked(parent, incident, link) if parent is not None else None,
        parts=tuple([await _linked(part, incident, link) for part in related.parts]),
        last=await _linked(last, incident, link) if last is not None else None,
        note=known_before(last) if last is not None else "",
    )


async def _linked(other: Incident, incident: Incident, link: Link) -> RelatedIncident:
    """Return a related incident, linked if both are on the same platform."""
    there = other.placement.message
    url = await link(there) if there is not None and there.place.platform == incident.placement.place.platform else ""
    is_open = other.state is IncidentState.OPEN
    return RelatedIncident(other.id, other.title, other.alert_count, is_open, url, other.service, other.severity)


async def _related(incident: Incident, transaction: Transaction) -> Related:
    above, again = incident.part_of, incident.recurrence
    return Related(
        parent=await transaction.incidents.get(above.incident_id) if above is not None else None,
        last=await transaction.incidents.get(again.incident_id) if again is not None else None,
        parts=await parts_of(incident, transaction, MAX_PARTS),
    )


def _version_of(message: IncidentMessage) -> str:
    """Return a digest that changes exactly when the rendered message changes."""
    incident = message.incident
    seen = replace(incident.with_placement(message=None), revision=0, updated_at=incident.opened_at, reopenings=())
    shown = (seen, message.leader, message.parts, message.filing, message.last, message.note)
    return hashlib.blake2b(repr(shown).encode(), digest_size=16).hexdigest()


async def link_postmortem(incident: Incident, ports: Ports) -> None:
    """Post a link to the draft, once. Does nothing unless the incident was cured and investigated.

    `public_url` is the address of the local page; without it, the message contains only the path.
    """
    if incident.placement.message is None or incident.stage is not Stage.DONE or not offers_postmortem(incident):
        return
    draft, address = draft_postmortem(incident), postmortem_address(incident, ports.chats.public_url)
    text = f"A draft of the postmortem, with {len(draft.sources)} pieces of evidence, is on the local page: {address}"
    notice = Notice(text, links=(address,) if ports.chats.public_url else ())
    await ports.poster.post_once(f"postmortem:{incident.id}", incident.placement.message.thread, notice)
