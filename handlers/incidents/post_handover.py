"""Post the handover of a channel at the change of shift: what everybody there may read, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from core.incidents.handover import Shift, format_handover
from core.incidents.readable import visible
from core.knowledge.redactor import redacted
from core.model.conversation import PUBLIC, Audience, Place
from core.model.errors import ToolUnavailable
from core.model.incident import Incident, IncidentState
from core.ports import Change, ChangeReader, TimeWindow
from handlers.common.ports import Company, Ports
from handlers.incidents.declare_maintenance import open_windows
from handlers.incidents.link_incident import linked_notice
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
    incidents = visible({each.id: each for each in (*opened, *of_shift)}.values(), audience, ports.chats.channels)
    quiet = {each.incident_id for each in waiting}
    held = {each.id: why for each in incidents if (why := _reason_to_hold(each, now, is_quiet=each.id in quiet))}
    windows = await open_windows(audience, ports.company.maintenance, ports.store, now)
    if PUBLIC not in audience.readers:  # changes and rotas are for members of the workspace
        return Shift(since, now, incidents, held, (), windows, ())
    readers = ports.readers.changes
    read = await asyncio.gather(*(_read(reader, TimeWindow(since, now)) for reader in readers))
    changes = {(each.id, each.service): each for changes in read for each in changes or ()}
    unread = [reader.name for reader, changes in zip(readers, read, strict=True) if changes is None]
    titles = [await asyncio.to_thread(redacted, each.title, ports.redact) for each in changes.values()]
    redacted_changes = [replace(change, title=title) for change, title in zip(changes.values(), titles, strict=True)]
    return Shift(since, now, incidents, held, redacted_changes, windows, await _on_call(now, ports.company), unread)


def _reason_to_hold(incident: Incident, now: datetime, *, is_quiet: bool) -> str:
    """Return why an incident was not posted; empty if it was."""
    if incident.silenced is not None and incident.state is IncidentState.OPEN:
        why = f"silenced by {incident.silenced.silenced_by} until {incident.silenced.until:%H:%M} UTC"
        return f"{why}: {incident.silenced.reason}" if incident.silenced.reason else why
    if incident.is_held_back(now):
        evidence = incident.page.evidence if incident.page is not None else ()
        return f"{HARMLESS}: {'; '.join(evidence)}" if evidence else HARMLESS
    return QUIET if is_quiet else ""


async def _read(reader: ChangeReader, window: TimeWindow) -> Sequence[Change] | None:
    try:
        async with asyncio.timeout(DEADLINE):
            return await reader.changes(window)
    except (ToolUnavailable, TimeoutError):
        return None


async def _on_call(now: datetime, company: Company) -> list[tuple[str, str]]:
    """Return the people on call for each team, where somebody is."""
    duties = await asyncio.gather(*(find_on_call(team, company.schedules, now) for team in company.teams))
    return [(team.name, ", ".join(people)) for team, (people, _) in zip(company.teams, duties, strict=True) if people]
