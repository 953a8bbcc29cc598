"""Send an update about an incident to people outside the teams: a person edits the draft, and chooses the channel."""

from __future__ import annotations

from core.incidents.readable import NONE_OPEN, visible
from core.incidents.update import draft_update
from core.model.audit import Act, audit_entry
from core.model.conversation import (
    PUBLIC,
    Audience,
    Channel,
    Person,
    Place,
    Platform,
    Question,
    channel_audience,
    channel_reader,
)
from core.model.feedback import Feedback
from core.model.filing import FilingKind
from core.model.incident import Incident, may_see_incident
from core.model.messages import FilingRequest, Notice
from core.model.naming import name_key
from handlers.common.ports import Chats, Ports
from handlers.common.stored_incident import incident_of_thread, stored_incident

MAX_CHANNELS = 50  # that are offered
MAX_LISTED = 5  # incidents
LOOKED_AT = 200  # latest open incidents
NO_CHANNEL = "Nothing was sent. From here you may send an update to no channel that may know of this incident."
NOT_THERE = "Nothing was sent, because not everybody in #{channel} may know of this incident."
EMPTY = "Nothing was sent, because the title or the text is empty."
SENT = "{person} sent an update to #{channel}."
SIGNED = "Sent by {person} with Plumbline."
WHICH = "Which incident? Say “update” with its service or its id: {incidents}."


async def draft_of_update(incident_id: str, audience: Audience, person: Person, ports: Ports) -> FilingRequest | str:
    """Return the draft for a person in a place with this audience, or the reason why there is none."""
    async with ports.store.transaction() as transaction:
        incident = await transaction.incidents.get(incident_id)
    channels = await _offered(incident, audience, person.platform, ports.chats) if incident is not None else []
    if incident is None or not channels:
        return NO_CHANNEL
    title, text = draft_update(incident, ports.clock.now())
    return FilingRequest(incident.id, FilingKind.UPDATE, title, text, tuple(channel.name for channel in channels))


async def _offered(incident: Incident, audience: Audience, platform: Platform, chats: Chats) -> list[Channel]:
    """Return the channels on a platform to which an update may go, those without the incident's message first.

    Only members of the workspace send updates. A private channel is offered only in itself, since its name is private.
    """
    if PUBLIC not in audience.readers:
        return []
    channels = await chats.channels_named(channel_reader(place) for each in chats.channels for place in each.places)
    there = {(place.platform, place.channel) for place in incident.placement.places}
    offered = [
        channel
        for channel in channels
        if platform in channel.ids
        and (not channel.private or f"channel:{channel.name}" in audience.readers)
        and may_see_incident(channel_audience(Place(platform, channel.ids[platform]), channels), incident, channels)
    ]
    return sorted(offered, key=lambda channel: (platform, channel.ids[platform]) in there)[:MAX_CHANNELS]


async def ask_for_update(feedback: Feedback, ports: Ports) -> None:
    """Post the draft in the thread, or the reason why there is none, unless the platform has opened a form."""
    if not feedback.in_form:
        draft = await draft_of_update(feedback.subject, feedback.audience, feedback.person, ports)
        message = Notice(draft) if isinstance(draft, str) else draft
        await ports.poster.post_once(f"update-asked:{feedback.id}", feedback.place, message)


async def send_update(feedback: Feedback, ports: Ports) -> None:
    """Post what a person has sent in the chosen channel, once, and say so in the thread."""
    await ports.poster.post_once(f"update-sent:{feedback.id}", feedback.place, Notice(await _sent(feedback, ports)))


async def _sent(feedback: Feedback, ports: Ports) -> str:
    async with ports.store.transaction() as transaction:
        incident = await stored_incident(feedback.subject, transaction)
    platform = feedback.person.platform
    offered = await _offered(incident, feedback.audience, platform, ports.chats)
    channel = next((each for each in offered if each.name == feedback.choice), None)
    if channel is None:
        return NO_CHANNEL
    place = Place(platform, channel.ids[platform])
    if not may_see_incident(await ports.chats.audience_at(place), incident, await ports.chats.channels_of([incident])):
        return NOT_THERE.format(channel=channel.name)
    title, text = " ".join(feedback.title.split()), feedback.text.strip()
    if not (title and text):
        return EMPTY
    person = feedback.person.name_or_id
    update = "\n\n".join([title, text, SIGNED.format(person=person)])
    await ports.poster.post_once(f"update:{feedback.id}", place, Notice(update))
    sent = audit_entry(
        f"updated:{feedback.id}",
        feedback.at,
        Act.FILED,
        feedback.person,
        incident.id,
        place=feedback.place,
        detail=f"update in {channel.name}",
    )
    async with ports.store.transaction() as transaction:
        await transaction.audit.add(sent)
    return SENT.format(person=person, channel=channel.name)


async def offer_update(question: Question, ports: Ports) -> bool:
    """Post the draft about the incident of the thread, or the open one that is named by its service or id.

    Returns False, and posts nothing, if something is named that is neither.
    """
    async with ports.store.transaction() as transaction:
        of_thread = await incident_of_thread(question.place, transaction) if not question.text else None
        latest = await transaction.incidents.latest_open(LOOKED_AT)
    channels = await ports.chats.channels_of(latest)
    opened = [each for each in visible(latest, question.audience, channels) if each.part_of is None]
    name = name_key(question.text)
    matches = [of_thread] if of_thread else [each for each in opened if name in ("", each.id, name_key(each.service))]
    if name and not matches:
        return False
    if len(matches) == 1:
        message = await draft_of_update(matches[0].id, question.audience, question.asker, ports)
    else:
        listed = ", ".join(f"{each.service or each.title} ({each.id})" for each in matches[:MAX_LISTED])
        message = WHICH.format(incidents=listed) if matches else NONE_OPEN
    shown = Notice(message) if isinstance(message, str) else message
    await ports.poster.post_once(f"update-drafted:{question.id}", question.place, shown)
    return True
