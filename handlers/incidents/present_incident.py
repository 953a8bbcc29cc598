"""Show an incident in the chat: one message that is edited in place, and the details in its thread."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial

from core.incidents.incident_view import is_put_off
from core.incidents.postmortem import draft_postmortem, offered_actions, offers_postmortem, postmortem_address
from core.incidents.readable import Related, incident_message, readable
from core.model.badge import Policy
from core.model.conversation import Channel, MessageReference, Place
from core.model.errors import ChatBusy, ConfigurationError, MessageNotFound, PlumblineError, Unavailable, Undeliverable
from core.model.incident import FilingTarget, Incident, IncidentState, Stage
from core.model.message_view import Feedback
from core.model.messages import IncidentDetails, IncidentMessage, Notice
from core.ports import Store, Transaction
from handlers.common.ports import Chats, Ports
from handlers.common.post_message import NEVER
from handlers.common.stored_incident import (
    change_incident,
    incident_intent,
    intent_at,
    read_incident,
    save_next,
    stored_incident,
)
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
# An incident after it was shown, the places in which it is held, and the refusal of one that takes no message.
Shown = tuple[Incident, frozenset[Place], PlumblineError | None]


async def update_chats(incident_id: str, ports: Ports, *, is_step: bool = True) -> None:
    """Update the chats: the message, a ping if the policy asks for one, and a postmortem once it is cured.

    As a step of an investigation, it does not wait for a busy chat: a task of its own does. Raises Undeliverable or
    MessageNotFound, after all of that, if one of its places refuses the message.
    """
    try:
        incident, held, refusal = await _arrange_and_present(incident_id, ports)
    except ChatBusy:
        if is_step and await _is_updated_later(incident_id, ports.store):
            return
        raise
    if incident.placement.place not in held and not incident.is_held_back(ports.clock.now()):
        await ping_owner(incident, ports)
        await update_details(incident, ports)
        await link_postmortem(incident, ports)
    if refusal is not None:
        raise refusal


async def present_meanwhile(incident_id: str, ports: Ports) -> None:
    """Update the message, ignoring chat errors: the next step shows more, and reports errors."""
    with suppress(Unavailable):
        await _arrange_and_present(incident_id, ports)


async def _arrange_and_present(incident_id: str, ports: Ports) -> Shown:
    arranged = await arrange_incident(await read_incident(incident_id, ports.store), ports)
    if arranged.part_of is None:
        await judge_page(arranged, ports)
    return await present_incident(incident_id, ports)


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


async def present_incident(incident_id: str, ports: Ports) -> Shown:
    """Post the incident's message, or edit it if it is out of date. Returns the incident as it is then.

    A silenced incident that was never posted stays unposted, and so does a part of another one, whose message tells of
    it in the same places. During quiet hours, or while it is held back, an existing message is edited but none is
    posted. Raises ChatBusy if further changes arrived in the meantime, so that a storm causes successive edits and no
    queue.
    """
    intent = incident_intent(incident_id)
    refusal: PlumblineError | None = None
    async with ports.poster.one_at_a_time(intent):
        async with ports.store.transaction() as transaction:
            # Read first, so that the incident that is read next is not older.
            pending_updates = await transaction.posts.pending_updates(intent)
            incident = await stored_incident(incident_id, transaction)
            related = await _related(incident, transaction)
            whole = await root_of(incident, transaction)
            if whole is not incident:
                await ask_to_present(whole, transaction, ports.clock.now())  # it counts its parts
            awaits_bot = await may_be_posted_too(incident, ports, transaction)
        is_told = whole is not incident and set(incident.placement.places) <= set(whole.placement.places)
        is_put_away = incident.placement.message is None and (is_told or incident.silenced is not None)
        if awaits_bot and not is_put_away and (seconds := await seconds_to_wait(incident, ports)):
            if incident.stage is Stage.DONE:
                raise ChatBusy(f"Incident {incident_id} waits for the message of the bot that posts the same.", seconds)
        elif not is_put_away:
            refusal = await _show(incident, related, ports)
        async with ports.store.transaction() as transaction:
            is_current = await transaction.posts.mark_current(intent, pending_updates)
            # Read again: while the chat took its time, somebody may have taken the incident, or reassigned it.
            incident = await stored_incident(incident_id, transaction)
            held = await transaction.held_incidents.places(incident_id)
        if not is_current:
            raise ChatBusy(f"More updates arrived while incident {incident_id} was being shown.", ROUND)
    return incident, held, refusal


async def _show(incident: Incident, related: Related, ports: Ports) -> PlumblineError | None:
    """Show the message in all places, to each what it may read. Returns the refusal of one that takes no message.

    Raises Unavailable, after all places were tried, if one may take it later.
    """
    failures: list[PlumblineError] = []
    # As they are now, if what is related or may be filed depends on them.
    channels = await ports.chats.channels_of([incident, *related.all] if related.all or ports.filing.targets else [])
    for place in incident.placement.places:
        try:
            await _show_at(place, await _message_at(place, incident, related, channels, ports), ports)
        except ConfigurationError as error:  # the chat was taken out of the configuration
            failures.append(Undeliverable(str(error)))
        except (Unavailable, Undeliverable, MessageNotFound) as error:
            failures.append(error)
    temporary = next((each for each in failures if isinstance(each, Unavailable)), None)
    if temporary is not None:
        raise temporary
    return failures[0] if failures else None


async def _message_at(
    place: Place, incident: Incident, related: Related, channels: Sequence[Channel], ports: Ports
) -> IncidentMessage:
    seen = await ports.chats.readable_at(place, incident)
    if related.all:
        related = related.visible_to(await ports.chats.audience_at(place), incident, channels)
    links = await _links(incident, related, ports.poster.link)
    offered = offered_actions(incident, ports.filing.targets, channels)
    joins_within = ports.paging.joins_within if place == incident.placement.place else None
    return incident_message(seen, related, links, ports.paging.policy, offered, joins_within)


async def _show_at(place: Place, message: IncidentMessage, ports: Ports) -> None:
    incident, intent = message.incident, intent_at(place, message.incident)
    is_admitted, waits = await admit_message(intent, incident, place, ports)
    if not is_admitted:
        return
    reference = await _post_or_edit(intent, place, message, ports)
    if place != incident.placement.place:
        return
    if incident.placement.message != reference:
        # `incident` is only the part of it that the place may read.
        await change_incident(incident.id, partial(_placed, reference, ports.clock.now()), ports.store)
    is_again = incident.state is IncidentState.OPEN and incident.reopened_count > 0
    if is_again and not (waits or incident.flapping or incident.silenced is not None or incident.part_of is not None):
        again = f"reopened:{incident.id}:{incident.reopened_count}"
        await ports.poster.post_once(again, reference.thread, Notice(FIRES_AGAIN))  # an edit notifies nobody


async def _post_or_edit(intent: str, place: Place, message: IncidentMessage, ports: Ports) -> MessageReference:
    """Post or edit the message in its old thread or, without one or after that was deleted, in the place."""
    version = _version_of(message)
    if message.old_thread is not None:
        with suppress(MessageNotFound):
            return await ports.poster.post_or_edit(intent, message.old_thread, message, version)
    return await ports.poster.post_or_edit(intent, place, message, version)


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
            seen, root = await ports.chats.readable_at(place, incident), incident.placement.message
            if place != incident.placement.place:
                root = await ports.poster.post_once(intent_at(place, incident), place, IncidentMessage(seen))
            if root is not None:
                details = intent_at(place, incident, "details")
                await ports.poster.post_once(details, root.thread, IncidentDetails(seen))
        except NEVER as error:
            refused = error
    if refused is not None:
        raise Undeliverable(str(refused)) from refused


async def show_details(feedback: Feedback, ports: Ports) -> None:
    """Post the current details after “Details” was pressed on a platform that cannot open a window."""
    if feedback.in_form:
        return
    incident = await read_incident(feedback.subject, ports.store)
    details = IncidentDetails(readable(incident, feedback.audience, await ports.chats.channels_of([incident])))
    await ports.poster.post_once(f"details-asked:{feedback.id}", feedback.place, details)


async def update_details(incident: Incident, ports: Ports) -> None:
    """Update the details in each thread after people reassigned the incident or commented on its cause."""
    if not (incident.hops or incident.notes) or incident.placement.message is None:
        return
    async with ports.store.transaction() as transaction:
        # Read again: while the owner was called, somebody may have changed it, and the details may show that already.
        incident = await stored_incident(incident.id, transaction)
        copies = [
            (place, (await transaction.posts.intend(intent_at(place, incident), place)).reference)
            for place in incident.placement.also_in
        ]
    for place, root in ((incident.placement.place, incident.placement.message), *copies):
        if root is not None:
            await _update_details_at(place, root, incident, ports)


async def _update_details_at(place: Place, root: MessageReference, incident: Incident, ports: Ports) -> None:
    intent = intent_at(place, incident, "details")
    if await ports.poster.is_posted(intent):
        seen = await ports.chats.readable_at(place, incident)
        shown = repr((seen.findings.owner, seen.hops, seen.findings.explanation))
        version = hashlib.blake2b(shown.encode(), digest_size=16).hexdigest()
        await ports.poster.post_or_edit(intent, root.thread, IncidentDetails(seen), version)


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
    visible = related.visible_to(audience, incident, channels)
    links, offered = await _links(incident, visible, link), offered_actions(incident, targets, channels)
    return incident_message(readable(incident, audience, channels), visible, links, policy, offered)


async def _links(incident: Incident, related: Related, link: Link) -> dict[str, str]:
    """Return the addresses of the messages of related incidents, of those on the same platform."""
    platform, messages = incident.placement.place.platform, {each.id: each.placement.message for each in related.all}
    return {id_: await link(there) for id_, there in messages.items() if there and there.place.platform == platform}


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
