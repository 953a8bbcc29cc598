"""Let people merge related incidents and separate unrelated ones."""

from __future__ import annotations

from collections.abc import Sequence

from core.incidents.grouping import share_an_audience
from core.model.conversation import Audience, Channel
from core.model.feedback import Feedback
from core.model.incident import Incident, may_see_incident
from core.model.messages import JoinRequest, Notice
from core.model.relation import Relation, RelationKind
from core.ports import Transaction
from handlers.common.ports import Ports
from handlers.common.stored_incident import change_incident, save_next, stored_incident
from handlers.incidents.arrange_incident import JOINING, separate
from handlers.incidents.open_incident import ask_to_present
from handlers.incidents.present_incident import MAX_PARTS, parts_of

MAX_OFFERED = 25  # incidents offered in one menu

NONE_OPEN = "There is no other open incident here to merge this one into."
PICK_ONE = (
    "Pick the incident to merge this one into, then press “Merge”. It must be open and visible to the same people."
)


async def separate_incident(feedback: Feedback, ports: Ports) -> None:
    """Separate a merged incident and resume its investigation. Does nothing if it is not merged."""

    async def separated(incident: Incident, transaction: Transaction) -> Incident:
        parent = await transaction.incidents.get(incident.part_of.incident_id) if incident.part_of else None
        return await separate(incident, parent, transaction, feedback.at)

    await change_incident(feedback.subject, separated, ports.store)


async def ask_for_parent(feedback: Feedback, ports: Ports) -> None:
    """Offer, in the incident's thread, the open incidents that it may be merged into."""
    async with ports.store.transaction() as transaction:
        incident = await transaction.incidents.get(feedback.subject)
    if incident is None:
        return
    channels = await _current_channels(incident, ports)
    async with ports.store.transaction() as transaction:
        offered = await _candidates(incident, feedback.audience, channels, transaction)
    if offered:
        request = JoinRequest(incident.id, tuple((each.id, each.title) for each in offered[:MAX_OFFERED]))
        await ports.poster.post_once(f"join:{feedback.id}", feedback.place, request)
    else:
        await ports.poster.post_once(f"join:{feedback.id}", feedback.place, Notice(NONE_OPEN))


async def join_incident(feedback: Feedback, ports: Ports) -> None:
    """Merge the incident into the picked one, or into the suggested one if none was picked."""
    refused = False

    async with ports.store.transaction() as transaction:
        stored = await stored_incident(feedback.subject, transaction)
    channels = await _current_channels(stored, ports)

    async def joined(incident: Incident, transaction: Transaction) -> Incident:
        nonlocal refused
        candidates = {each.id: each for each in await _candidates(incident, feedback.audience, channels, transaction)}
        suggested = incident.relation(RelationKind.MAY_BE_PART_OF)
        parent = candidates.get(feedback.choice or (suggested.incident_id if suggested is not None else ""))
        refused = parent is None
        if parent is None:
            return incident
        merge = Relation(RelationKind.PART_OF, parent.id, at=feedback.at, person=feedback.person.name_or_id)
        free = incident.without_relation(RelationKind.APART_FROM, parent.id)
        merged = free.without_relation(RelationKind.MAY_BE_PART_OF).with_relation(merge)
        part = await save_next(merged, incident, transaction)
        before = await transaction.incidents.get(incident.part_of.incident_id) if incident.part_of else None
        for each in (part, parent, before):
            if each is not None:
                await ask_to_present(each, transaction, feedback.at)
        return part

    async with ports.store.lock(JOINING):
        await change_incident(feedback.subject, joined, ports.store)
    if refused:
        await ports.poster.post_once(f"pick-one:{feedback.id}", feedback.place, Notice(PICK_ONE))


async def _current_channels(incident: Incident, ports: Ports) -> Sequence[Channel]:
    """Return the channels as they are now, for an incident and those that it may be merged into."""
    async with ports.store.transaction() as transaction:
        latest = await transaction.incidents.latest_open(MAX_PARTS)
    return await ports.chats.channels_of([incident, *latest])


async def _candidates(
    incident: Incident, audience: Audience, channels: Sequence[Channel], transaction: Transaction
) -> list[Incident]:
    """Return the open incidents with the same readers, visible to this audience, that are not part of this incident.

    The newest come first.
    """
    parts = {each.id for each in await parts_of(incident, transaction, MAX_PARTS)}
    return [
        other
        for other in await transaction.incidents.latest_open(MAX_PARTS)
        if other.id not in parts | {incident.id}
        and other.silenced is None
        and share_an_audience(incident, other, channels)
        and may_see_incident(audience, other, channels)
    ]
