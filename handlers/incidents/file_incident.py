"""File an issue or a postmortem about an incident: a person edits the draft and sends it, and it is written once.

The sent report is stored on the incident before it is written. A retry after a failure or a crash first asks the other
system whether the report is already there.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import ceil

from core.incidents.filing import (
    KINDS,
    MAX_DRAFT,
    MAX_TITLE,
    allowed_targets,
    cut_draft,
    draft_report,
    file_stem,
    without_links,
)
from core.incidents.postmortem import worth_a_postmortem
from core.incidents.readable import readable
from core.knowledge.redactor import redacted
from core.model.audit import Act, audit_entry
from core.model.conversation import PUBLIC, Audience, Person, Place, named_readers
from core.model.errors import SourceUnavailable, Unavailable
from core.model.feedback import Feedback
from core.model.filing import Filed, Filing, FilingKind, FilingTarget, Report, marker_of
from core.model.incident import Incident, may_see_incident
from core.model.messages import BUTTON_LABELS, ButtonAction, FilingRequest, Notice, NoticeKind
from core.ports import Store, Transaction
from handlers.common.ports import Chats, Ports
from handlers.common.post_message import Poster
from handlers.common.stored_incident import change_incident, save_next, stored_incident, update_incident
from handlers.incidents.open_incident import present_task

NOT_ALLOWED = "Nothing was filed. plumbline.yaml doesn’t allow you to file that from this channel."
NOT_YET = "There is no postmortem yet: the incident isn’t over, or it has no cause, owner or note to report."
EMPTY = "Nothing was filed, because the title or the text is empty. Press “{button}” again."
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
    async with ports.store.transaction() as transaction:
        incident = await transaction.incidents.get(incident_id)
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
        if target.is_open_to(person)
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
    message = Notice(draft) if isinstance(draft, str) else draft
    await ports.poster.post_once(f"filing-asked:{feedback.id}", feedback.place, message)


async def file_report(feedback: Feedback, ports: Ports) -> None:
    """Write the report that a person has sent, once for each incident and target, and post a link in the thread.

    If the other system fails, the draft is kept on the incident, and the thread says why. Raises Unavailable, to be
    called again, while the other system may not show yet what was written to it.
    """
    async with ports.store.transaction() as transaction:
        incident = await stored_incident(feedback.subject, transaction)
    allowed = [
        target
        for kind in FilingKind
        for target in await _allowed(incident, kind, feedback.audience, feedback.person, ports)
        if target.name == feedback.choice
    ]
    if not allowed:
        await _say(NOT_ALLOWED, feedback, ports.poster)
        return
    target = allowed[0]
    if not (feedback.title.strip() and feedback.text.strip()):
        await _say(EMPTY.format(button=BUTTONS[target.kind]), feedback, ports.poster)
        return
    async with ports.store.lock(f"file {incident.id} {target.name}"):
        await _file(incident.id, target, feedback, ports)


async def _file(incident_id: str, target: FilingTarget, feedback: Feedback, ports: Ports) -> None:
    async with ports.store.transaction() as transaction:
        incident = await stored_incident(incident_id, transaction)
    earlier = next((each for each in incident.filings if each.target == target.name), None)
    if earlier is not None and earlier.filed is not None:
        if earlier.press == feedback.id:  # this ran before, and was interrupted before it could say so
            await _tell(earlier, earlier.filed, incident_id, feedback, ports.poster)
        else:
            text = ALREADY.format(person=earlier.person, target=target.name, url=earlier.filed.url)
            await _say(text, feedback, ports.poster)
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
    text: str, feedback: Feedback, poster: Poster, kind: NoticeKind = NoticeKind.INFORMATION, *, url: str = ""
) -> None:
    await poster.post_once(f"filing:{feedback.id}", feedback.place, Notice(text, kind, links=(url,)))
