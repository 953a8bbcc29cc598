"""Messages from one shift to the next: windows of maintenance, and the handover of a channel.

Incidents are linked to the message that the readers of the place may read, or to the local page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from urllib.parse import quote

from core.incidents.handover import PostLine, Shift, format_handover
from core.incidents.incident_questions import MaintenanceWish, read_maintenance
from core.incidents.readable import visible
from core.knowledge.redactor import redacted
from core.model.conversation import (
    PUBLIC,
    Audience,
    MessageReference,
    Place,
    Question,
    channel_audience,
    current_readers,
)
from core.model.errors import ToolUnavailable
from core.model.incident import Incident, IncidentState
from core.model.messages import Notice
from core.model.silences import Matcher, Silence
from core.model.text import name_key, spellings
from core.ports import Change, ChangeReader, TimeWindow
from handlers.common.ports import Ports
from handlers.common.stored_incident import intent_at
from handlers.incidents.ping_owner import find_on_call

LOOKED_AT = 500  # latest incidents searched
DEADLINE = 8.0  # seconds to read changes
QUIET = "the channel was quiet"
HARMLESS = "it seemed to need nobody"


async def post_handover(intent: str, place: Place, since: datetime, ports: Ports) -> None:
    """Post the handover of the shift that began at `since`, once for each intent."""
    audience, now = await ports.chats.audience_at(place), ports.clock.now()
    shift = await _shift(since, now, audience, ports)
    notice = await linked_notice(format_handover(shift), shift.incidents, place, audience, ports)
    await ports.poster.post_once(intent, place, notice)


async def _shift(since: datetime, now: datetime, audience: Audience, ports: Ports) -> Shift:
    async with ports.store.transaction() as transaction:
        recent = await transaction.incidents.recent(LOOKED_AT)
        opened = await transaction.incidents.latest_open(LOOKED_AT)
        waiting = await transaction.held_incidents.waiting()
    of_shift = [each for each in recent if (each.resolved_at or now) >= since]
    latest = {each.id: each for each in (*opened, *of_shift)}.values()
    incidents = visible(latest, audience, await ports.chats.channels_of(latest))
    quiet = {each.incident_id for each in waiting}
    held = {each.id: why for each in incidents if (why := _reason_to_hold(each, now, is_quiet=each.id in quiet))}
    windows = await open_windows(audience, ports)
    if PUBLIC not in audience.readers:  # changes and rotas are for members of the workspace
        return Shift(since, now, incidents, held, (), windows, ())
    readers = ports.readers.changes
    read = await asyncio.gather(*(_read(reader, TimeWindow(since, now)) for reader in readers))
    changes = {(each.id, each.service): each for changes in read for each in changes or ()}
    unread = [reader.name for reader, changes in zip(readers, read, strict=True) if changes is None]
    titles = [await asyncio.to_thread(redacted, each.title, ports.redact) for each in changes.values()]
    redacted_changes = [replace(change, title=title) for change, title in zip(changes.values(), titles, strict=True)]
    teams = ports.company.teams
    duties = await asyncio.gather(*(find_on_call(team, ports.company.schedules, now) for team in teams))
    on_call = [(team.name, ", ".join(people)) for team, (people, _) in zip(teams, duties, strict=True) if people]
    return Shift(since, now, incidents, held, redacted_changes, windows, on_call, unread)


def _reason_to_hold(incident: Incident, now: datetime, *, is_quiet: bool) -> str:
    """Return why an incident was not posted; empty if it was."""
    if incident.silenced is not None and incident.state is IncidentState.OPEN:
        why = f"silenced by {incident.silenced.silenced_by} until {incident.silenced.until:%H:%M} UTC"
        return f"{why}: {incident.silenced.reason}" if incident.silenced.reason else why
    if incident.is_held_back(now):
        evidence = incident.findings.page.evidence if incident.findings.page is not None else ()
        return f"{HARMLESS}: {'; '.join(evidence)}" if evidence else HARMLESS
    return QUIET if is_quiet else ""


async def _read(reader: ChangeReader, window: TimeWindow) -> Sequence[Change] | None:
    try:
        async with asyncio.timeout(DEADLINE):
            return await reader.changes(window)
    except (ToolUnavailable, TimeoutError):
        return None


async def linked_notice(
    lines: Sequence[PostLine], incidents: Sequence[Incident], place: Place, audience: Audience, ports: Ports
) -> Notice:
    """Return the lines as a message for this place, linked to the incidents that they name, and to the rest of them."""
    by_id = {each.id: each for each in incidents}
    page = f"{ports.chats.public_url.rstrip('/')}/incidents" if ports.chats.public_url else ""

    async def address(line: PostLine) -> str:
        if line.has_more:
            return page
        incident = by_id.get(line.incident_id)
        if incident is None:
            return ""
        posted = await _message_for(place, incident, audience, ports)
        on_page = f"{page}/{quote(incident.id, safe='')}" if page else ""
        return (await ports.poster.link(posted) if posted is not None else "") or on_page

    return Notice("\n".join(line.text for line in lines), links=tuple([await address(line) for line in lines]))


async def _message_for(place: Place, incident: Incident, audience: Audience, ports: Ports) -> MessageReference | None:
    """Return an incident's message in this channel, else one on its platform that the audience may read."""
    here = next(
        (
            each
            for each in incident.placement.also_in
            if (each.platform, each.channel) == (place.platform, place.channel)
        ),
        None,
    )
    if here is not None:
        async with ports.store.transaction() as transaction:
            return (await transaction.posts.intend(intent_at(here, incident), here)).reference
    posted = incident.placement.message
    if posted is None or posted.place.platform != place.platform:
        return None
    is_here = posted.place.channel == place.channel
    channels = await ports.chats.channels_of([incident])
    is_readable = audience.may_read(channel_audience(posted.place, channels).disclosed_to)
    return posted if is_here or is_readable else None


OUTSIDERS = "People from outside the workspace can read this channel. You can set maintenance only in the workspace’s own channels."
UNKNOWN = "I don’t know a service called {service}. Known services: {known}."
NONE_OPEN = "{service} has no open maintenance window."
NO_WINDOWS = "No maintenance window is open."
CLOCK_SKEW = timedelta(minutes=1)  # by which a chat's clock may differ from ours
MAX_KNOWN = 20  # services listed after an unknown name


async def declare_maintenance(question: Question, ports: Ports) -> None:
    """Declare, end or list maintenance windows. Only for members of the workspace, and for known services."""
    wish = read_maintenance(question.text) or MaintenanceWish()
    wish = replace(wish, service=spellings(ports.company.services).get(name_key(wish.service), wish.service))
    if PUBLIC not in question.audience.readers:
        text = OUTSIDERS
    elif not wish.service:
        text = await _listed(question.audience, ports)
    elif wish.service not in ports.company.services:
        services, more = sorted(ports.company.services), len(ports.company.services) - MAX_KNOWN
        named = ", ".join(services[:MAX_KNOWN]) + (f" and {more} more" if more > 0 else "")
        text = UNKNOWN.format(service=wish.service, known=named or "none")
    elif wish.length is None:
        text = await _ended(wish.service, question, ports)
    else:
        text = await _declared(wish, wish.length, question, ports)
    await ports.poster.post_once(f"maintenance:{question.id}", question.place, Notice(text))


async def _declared(wish: MaintenanceWish, length: timedelta, question: Question, ports: Ports) -> str:
    begins = min(question.asked_at, ports.clock.now())  # the step may run late or twice

    window = Silence(
        id=question.id,
        matchers=(Matcher("service", frozenset({wish.service})),),
        starts_at=begins,
        ends_at=begins + length,
        reason=wish.reason,
        author=question.asker.name_or_id,
        readers=question.audience.disclosed_to,
    )
    async with ports.store.transaction() as transaction:
        await transaction.silences.save(window)
    return f"I post nothing about {wish.service} until {_until(window)}. To end it: maintenance end {wish.service}"


async def _ended(service: str, question: Question, ports: Ports) -> str:
    matcher, now = Matcher("service", frozenset({service})), ports.clock.now()
    since = min(question.asked_at, now) - CLOCK_SKEW  # so that a repeated step finds the windows that it ended
    async with ports.store.transaction() as transaction:
        of_service = [each for each in await transaction.silences.not_over(since) if each.matchers == (matcher,)]
    windows = await _readable(of_service, question.audience, ports)
    async with ports.store.transaction() as transaction:
        for window in windows:
            await transaction.silences.save(replace(window, ends_at=min(window.ends_at, now)))
    if not windows:
        return NONE_OPEN.format(service=service)
    return f"Maintenance of {service} is over. Alerts that are still firing are posted within a minute."


async def _listed(audience: Audience, ports: Ports) -> str:
    return "\n".join([f"• {line}" for line in await open_windows(audience, ports)]) or NO_WINDOWS


async def open_windows(audience: Audience, ports: Ports) -> Sequence[str]:
    """Return one line for each open maintenance window that this audience may read."""
    now = ports.clock.now()
    async with ports.store.transaction() as transaction:
        declared = await transaction.silences.not_over(now)
    windows = [each for each in (*ports.company.maintenance.at(now), *declared) if each.starts_at <= now < each.ends_at]
    return [_format_window(window) for window in await _readable(windows, audience, ports)]


async def _readable(windows: Sequence[Silence], audience: Audience, ports: Ports) -> list[Silence]:
    channels = await ports.chats.channels_named(reader for window in windows for reader in window.readers)
    return [window for window in windows if audience.may_read(current_readers(window.readers, channels))]


def _format_window(window: Silence) -> str:
    by = f", declared by {window.author}" if window.author else ""
    reason = f": {window.reason}" if window.reason else ""
    return f"{window.description}, until {_until(window)}{by}{reason}"


def _until(window: Silence) -> str:
    return f"{window.ends_at:%Y-%m-%d %H:%M} UTC"
