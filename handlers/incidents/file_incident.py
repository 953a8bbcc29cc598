"""Reports on an incident to others: an issue, a postmortem, or an update for people outside the teams.

The sent report is stored on the incident before it is written. A retry after a failure or a crash first asks the other
system whether the report is already there.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import ceil

from core.incidents.handover import draft_update
from core.incidents.postmortem import (
    KINDS,
    MAX_DRAFT,
    MAX_TITLE,
    allowed_targets,
    cut_draft,
    draft_report,
    file_stem,
    without_links,
    worth_a_postmortem,
)
from core.incidents.readable import NONE_OPEN, readable, visible
from core.knowledge.redactor import redacted
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
    named_readers,
)
from core.model.errors import SourceUnavailable, Unavailable
from core.model.incident import Filed, Filing, FilingKind, FilingTarget, Incident, Report, marker_of, may_see_incident
from core.model.message_view import Feedback
from core.model.messages import BUTTON_LABELS, ButtonAction, FilingRequest, Notice, NoticeKind
from core.model.text import name_key
from core.ports import Store, Transaction
from handlers.common.ports import Chats, Ports
from handlers.common.post_message import Poster
from handlers.common.stored_incident import (
    change_incident,
    find_incident,
    incident_of_thread,
    read_incident,
    save_next,
    update_incident,
)
from handlers.incidents.open_incident import present_task

NOT_ALLOWED = "Nothing was filed. plumbline.yaml doesn’t allow you to file that from this channel."
NOT_YET = "There is no postmortem yet: the incident isn’t over, or it has no cause, owner or note to report."
NOT_FILED = "Nothing was filed, because the title or the text is empty. Press “{button}” again."
ALREADY = "Nothing was filed, because {person} has already filed this in {target}: {url}"
FILED = "{person} filed “{title}” in {target} as {key}: {url}"
FAILED = "{target} did not confirm that it filed this. {problem} Your draft is kept: press “{button}” to open it again."
ARRIVED = (
    "An earlier attempt was filed in {target} as {key}, although its confirmation did not arrive: {url} Nothing was filed "
    "again, so your later changes are not in it."
)
BUTTONS = {kind: BUTTON_LABELS[action] for action, kind in KINDS.items()}


async def draft_of(
    action: ButtonAction, incident_id: str, audience: Audience, person: Person, ports: Ports
) -> FilingRequest | str:
    """Return the draft for a person in a place with this audience, or the reason why there is none."""
    if action is ButtonAction.WRITE_UPDATE:
        return await draft_of_update(incident_id, audience, person, ports)
    incident = await find_incident(incident_id, ports.store)
    kind = KINDS[action]
    allowed = await _allowed(incident, kind, audience, person, ports) if incident is not None else []
    if incident is None or not allowed:
        return NOT_ALLOWED
    if kind is FilingKind.POSTMORTEM and not worth_a_postmortem(incident):
        return NOT_YET
    channels = await ports.chats.channels_of([incident])
    for each in [audience, *[one for target in allowed for one in await _audiences(target, ports.chats)]]:
        incident = readable(incident, each, channels)
    names = [target.name for target in allowed]
    kept = next((each for each in incident.filings if each.target in names and each.filed is None and each.text), None)
    drafted = partial(redacted, redact=ports.redact)
    title, text = (kept.title, kept.text) if kept is not None else draft_report(incident, kind, drafted)
    names.sort(key=lambda name: kept is None or name != kept.target)
    return FilingRequest(incident.id, kind, title, cut_draft(text, MAX_DRAFT), tuple(names))


async def _allowed(
    incident: Incident, kind: FilingKind, audience: Audience, person: Person, ports: Ports
) -> list[FilingTarget]:
    channels = await ports.chats.channels_of([incident])
    targets = allowed_targets(incident, kind, audience, ports.filing.targets, channels)
    return [
        target
        for target in targets
        if (not target.people or person.key in target.people)
        and all(may_see_incident(each, incident, channels) for each in await _audiences(target, ports.chats))
    ]


async def _audiences(target: FilingTarget, chats: Chats) -> list[Audience]:
    """Return the audiences that can read a target: the public, or the members of channels, with guests if it has any."""
    audiences: list[Audience] = []
    for reader in sorted(target.readers):
        named = [channel for channel in chats.channels if f"channel:{channel.name}" == reader]
        places = [Place(platform, channel_id) for channel in named for platform, channel_id in channel.ids.items()]
        readers = named_readers([channel.name for channel in named], named) | {reader}
        has_outsiders = any([PUBLIC not in (await chats.audience_at(place)).readers for place in places])
        audiences.append(Audience(readers if has_outsiders else readers | {PUBLIC}))
    return audiences


async def ask_to_file(feedback: Feedback, ports: Ports) -> None:
    """Post the draft in the thread, or the reason why there is none, unless the platform has opened a form."""
    if feedback.in_form:
        return
    draft = await draft_of(feedback.verdict, feedback.subject, feedback.audience, feedback.person, ports)
    message = Notice(draft, only_for=feedback.person) if isinstance(draft, str) else draft
    await ports.poster.post_once(f"filing-asked:{feedback.id}", feedback.place, message)


async def file_report(feedback: Feedback, ports: Ports) -> None:
    """Write the report that a person has sent, once for each incident and target, and post a link in the thread.

    If the other system fails, the draft is kept on the incident, and the thread says why. Raises Unavailable, to be
    called again, while the other system may not show yet what was written to it.
    """
    incident = await read_incident(feedback.subject, ports.store)
    allowed = [
        target
        for kind in FilingKind
        for target in await _allowed(incident, kind, feedback.audience, feedback.person, ports)
        if target.name == feedback.choice
    ]
    if not allowed:
        await _say(NOT_ALLOWED, feedback, ports.poster, only_for=feedback.person)
        return
    target = allowed[0]
    if not (feedback.title.strip() and feedback.text.strip()):
        await _say(NOT_FILED.format(button=BUTTONS[target.kind]), feedback, ports.poster, only_for=feedback.person)
        return
    async with ports.store.lock(f"file {incident.id} {target.name}"):
        await _file(incident.id, target, feedback, ports)


async def _file(incident_id: str, target: FilingTarget, feedback: Feedback, ports: Ports) -> None:
    incident = await read_incident(incident_id, ports.store)
    earlier = next((each for each in incident.filings if each.target == target.name), None)
    if earlier is not None and earlier.filed is not None:
        if earlier.press == feedback.id:  # this ran before, and was interrupted before it could say so
            await _tell(earlier, earlier.filed, incident_id, feedback, ports.poster)
        else:
            text = ALREADY.format(person=earlier.person, target=target.name, url=earlier.filed.url)
            await _say(text, feedback, ports.poster, only_for=feedback.person)
        return
    publisher, now = ports.filing.publishers[target.name], ports.clock.now()
    if earlier is not None and (left := earlier.at.timestamp() + publisher.settles_after - now.timestamp()) > 0:
        raise SourceUnavailable(f"{target.name} may not show yet what was written there.", left)
    person, since = feedback.person.name_or_id, earlier.since if earlier is not None else now
    title = without_links(" ".join(feedback.title.split()))[:MAX_TITLE]  # a publisher may use it as a commit message
    filing = Filing(
        target.name,
        target.kind,
        title,
        feedback.text,
        person,
        feedback.id,
        since,
        now,
        readers=tuple(sorted(feedback.audience.disclosed_to)),
    )
    stem = file_stem(incident, partial(redacted, redact=ports.redact))

    def report(filing: Filing) -> Report:
        return Report(marker_of(incident_id, target.name), filing.title, filing.text, stem, since)

    filed: Filed | None = None
    if earlier is not None:
        try:
            filed = await publisher.find(report(earlier))
        except Unavailable as error:  # the earlier title is kept, because some systems find it by this title alone
            await _keep(replace(filing, title=earlier.title), error, incident_id, feedback, ports)
            return
        if filed is not None and earlier.press != feedback.id:
            await _record(replace(earlier, filed=filed, text="", problem=""), filed, incident_id, feedback, ports.store)
            text = ARRIVED.format(target=target.name, key=filed.key, url=filed.url)
            await _say(text, feedback, ports.poster, url=filed.url)
            return
    if filed is None:
        await update_incident(incident_id, partial(_with, filing), ports.store)
        try:
            filed = await publisher.file(report(filing))
        except Unavailable as error:
            await _keep(filing, error, incident_id, feedback, ports)
            return
    await _record(replace(filing, filed=filed, text=""), filed, incident_id, feedback, ports.store)
    await _tell(filing, filed, incident_id, feedback, ports.poster)


async def _keep(filing: Filing, error: Unavailable, incident_id: str, feedback: Feedback, ports: Ports) -> None:
    """Store a draft that was not filed, and say why."""
    await update_incident(incident_id, partial(_with, replace(filing, problem=str(error))), ports.store)
    wait = f" It asks to wait {ceil(error.retry_after)} s." if error.retry_after else ""
    text = FAILED.format(target=filing.target, problem=f"{error}{wait}", button=BUTTONS[filing.kind])
    await _say(text, feedback, ports.poster, NoticeKind.ERROR)


async def _record(filing: Filing, filed: Filed, incident_id: str, feedback: Feedback, store: Store) -> None:
    async def recorded(latest: Incident, transaction: Transaction) -> Incident:
        saved = await save_next(_with(filing, latest), latest, transaction)
        await transaction.tasks.add(present_task(saved))
        await transaction.audit.add(
            audit_entry(
                f"filed:{feedback.id}",
                feedback.at,
                Act.FILED,
                feedback.person,
                incident_id,
                place=feedback.place,
                documents=(filed.url,),
                detail=filing.target,
            )
        )
        return saved

    await change_incident(incident_id, recorded, store)


def _with(filing: Filing, incident: Incident) -> Incident:
    others = tuple(each for each in incident.filings if each.target != filing.target)
    return replace(incident, filings=(*others, filing))


async def _tell(filing: Filing, filed: Filed, incident_id: str, feedback: Feedback, poster: Poster) -> None:
    text = FILED.format(person=filing.person, title=filing.title, target=filing.target, key=filed.key, url=filed.url)
    await poster.post_once(f"filed:{incident_id}:{filing.target}", feedback.place, Notice(text, links=(filed.url,)))


async def _say(
    text: str,
    feedback: Feedback,
    poster: Poster,
    kind: NoticeKind = NoticeKind.INFORMATION,
    *,
    url: str = "",
    only_for: Person | None = None,
) -> None:
    await poster.post_once(f"filing:{feedback.id}", feedback.place, Notice(text, kind, links=(url,), only_for=only_for))


MAX_CHANNELS = 50  # that are offered
MAX_LISTED = 5  # incidents
LOOKED_AT = 200  # latest open incidents
NO_CHANNEL = "Nothing was sent. From here you may send an update to no channel that may know of this incident."
NOT_THERE = "Nothing was sent, because not everybody in #{channel} may know of this incident."
NOT_SENT = "Nothing was sent, because the title or the text is empty."
SENT = "{person} sent an update to #{channel}."
SIGNED = "Sent by {person} with Plumbline."
WHICH = "Which incident? Say “update” with its service or its id: {incidents}."


async def draft_of_update(incident_id: str, audience: Audience, person: Person, ports: Ports) -> FilingRequest | str:
    """Return the draft for a person in a place with this audience, or the reason why there is none."""
    incident = await find_incident(incident_id, ports.store)
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


async def send_update(feedback: Feedback, ports: Ports) -> None:
    """Post what a person has sent in the chosen channel, once, and say so in the thread."""
    await ports.poster.post_once(f"update-sent:{feedback.id}", feedback.place, Notice(await _sent(feedback, ports)))


async def _sent(feedback: Feedback, ports: Ports) -> str:
    incident = await read_incident(feedback.subject, ports.store)
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
        return NOT_SENT
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
