"""Post the handover of a channel at the change of shift: what everybody there may read, and nothing else.

Incidents are linked to the message that the readers of the place may read, or to the local page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from urllib.parse import quote

from core.incidents.handover import PostLine, Shift, format_handover
from core.incidents.readable import visible
from core.knowledge.redactor import redacted
from core.model.conversation import PUBLIC, Audience, MessageReference, Place, channel_audience
from core.model.errors import ToolUnavailable
from core.model.incident import Incident, IncidentState
from core.model.messages import Notice
from core.ports import Change, ChangeReader, TimeWindow
from handlers.common.ports import Ports
from handlers.common.stored_incident import incident_intent
from handlers.incidents.declare_maintenance import open_windows
from handlers.incidents.ping_owner import find_on_call
from handlers.incidents.present_incident import copy_intent

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
            return (await transaction.posts.intend(copy_intent(incident_intent(incident.id), here), here)).reference
    posted = incident.placement.message
    if posted is None or posted.place.platform != place.platform:
        return None
    is_here = posted.place.channel == place.channel
    channels = await ports.chats.channels_of([incident])
    is_readable = audience.may_read(channel_audience(posted.place, channels).disclosed_to)
    return posted if is_here or is_readable else None
