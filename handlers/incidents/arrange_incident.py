"""Decide how an incident is shown: not while it is silenced, as part of another incident, or on its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from core.incidents.folding import (
    MAX_CHAIN,
    MINUTES,
    REPEATED_WITHIN,
    is_independent,
    merges,
    profiles,
    related_services,
    suggested_parent,
)
from core.model.alert import Severity
from core.model.errors import ToolUnavailable
from core.model.findings import Relation, RelationKind
from core.model.incident import Incident, IncidentState, Stage
from core.model.silences import Silence, silenced_now
from core.ports import AlertMonitor, Clock, Store, Task, Transaction
from core.rca.dependencies import unanswering
from handlers.common.ports import Company, Ports
from handlers.common.stored_incident import change_incident, save_next
from handlers.incidents.hold_incident import PRESENT_HELD, details_task, unlist
from handlers.incidents.mute_alert import ended_mutes
from handlers.incidents.open_incident import ask_to_present, investigate_task

MAX_NEAR = 100  # incidents that one incident is compared with
PART = 500  # open incidents read per batch
DEADLINE = 8.0  # seconds that one monitoring system may take
JOINING = "join incidents"  # the lock for merging incidents, so that the second merge sees the first


async def arrange_incident(incident: Incident, ports: Ports) -> Incident:
    """Return the incident as it should be shown now, and save any change.

    Silencing and merging are decided before the first post, again when the investigation finds the cause in another
    service, and again after the triage of a critical incident. Later, only people and `watch_incidents` change them.
    """
    if incident.stage is Stage.DONE:
        incident = await _free_independent(incident, ports)
    if not _needs_arranging(incident):
        return incident
    now = ports.clock.now()
    async with ports.store.transaction() as transaction:
        declared = await transaction.silences.not_over(now)
        near_now = await _near(incident, ports.company, transaction)
    silences = [*declared, *await _other_silences(now, ports)]
    channels = await ports.chats.channels_of([incident, *near_now])
    is_bound = False

    async def looked_at(latest: Incident, transaction: Transaction) -> Incident:
        nonlocal is_bound
        loud = await _update_silence(latest, silences, ports.company, transaction, now)
        # Who opens later looks for this one, and a merge is decided anew with the lock.
        near = near_now if loud == incident else await _near(loud, ports.company, transaction)
        first, *others = profiles([loud, *near], ports.company.dependencies, channels)
        is_bound = bool(merges(first, others, await _below(loud, near, transaction)))
        suggestion = suggested_parent(first, [other for other in others if other.incident.part_of is None])
        if is_bound or suggestion == loud.relation(RelationKind.MAY_BE_PART_OF):
            return loud
        alone = loud.without_relation(RelationKind.MAY_BE_PART_OF)
        return await save_next(alone.with_relation(suggestion) if suggestion is not None else alone, loud, transaction)

    async def joined(latest: Incident, transaction: Transaction) -> Incident:
        near = await _near(latest, ports.company, transaction)
        first, *others = profiles([latest, *near], ports.company.dependencies, channels)
        for merge in merges(first, others, await _below(latest, near, transaction)):
            part, parent = merge.part, await root_of(merge.parent, transaction)
            if part.relation(RelationKind.APART_FROM, parent.id) is not None:
                continue
            relation = Relation(
                RelationKind.PART_OF, parent.id, reasons=(merge.reason,), at=now, provisional=merge.provisional
            )
            merged = await _merge(part, parent, relation, transaction, now)
            latest = merged if part is latest else latest
        return latest

    # Read again if monitoring systems took their time, in which somebody may have changed it.
    arranged = await change_incident(incident.id, looked_at, ports.store, None if ports.readers.monitors else incident)
    if not is_bound:
        return arranged  # skips the lock, so that a storm of unrelated incidents does not queue for it
    async with ports.store.lock(JOINING):
        # Read again: an earlier holder of the lock may have merged it.
        return await change_incident(incident.id, joined, ports.store)


async def watch_incidents(ports: Ports) -> None:
    """Update every open incident: post those whose silence ended, and separate those whose parent has been resolved.

    An incident that was silenced after it was posted says so in its message. An incident that was held back because it
    seemed to need nobody is posted when that time ends.
    """
    now = ports.clock.now()
    async with ports.store.transaction() as transaction:
        declared = await transaction.silences.not_over(now)
    silences = [*declared, *await _other_silences(now, ports)]

    async def look_after(latest: Incident, transaction: Transaction) -> Incident:
        if (until := latest.findings.held_until) is not None and not latest.is_held_back(now):
            held = f"{latest.id}:{until:%Y%m%dT%H%M%S}"
            await transaction.tasks.add(Task(f"held-back:{held}", PRESENT_HELD, latest.id, {}))
        return await _update_silence(await _freed(latest, transaction, now), silences, ports.company, transaction, now)

    last: Incident | None = None
    while watched := await _open_after(last, ports.store):
        for incident in watched:
            await change_incident(incident.id, look_after, ports.store, incident)
        last = watched[-1]


async def _open_after(last: Incident | None, store: Store) -> list[Incident]:
    async with store.transaction() as transaction:
        return await transaction.incidents.open(PART, last)


async def is_anything_open(*, store: Store, clock: Clock) -> bool:
    """Return whether any incident is open, a message waits for a chat to take it, or the end of a mute is to be told."""
    async with store.transaction() as transaction:
        is_open = await transaction.incidents.open(1) or await transaction.dead_letters.waiting()
    return bool(is_open or await ended_mutes(store, clock))


async def _other_silences(now: datetime, ports: Ports) -> list[Silence]:
    """Return the silences in force that nobody declared in a chat.

    A monitoring system that does not answer contributes none, so its incidents stay visible.
    """
    of_monitors = await asyncio.gather(*(_silences_of(monitor) for monitor in ports.readers.monitors))
    return [*ports.company.maintenance.at(now), *(silence for each in of_monitors for silence in each)]


async def _silences_of(monitor: AlertMonitor) -> list[Silence]:
    try:
        async with asyncio.timeout(DEADLINE):
            return await monitor.silences()
    except (ToolUnavailable, TimeoutError):
        return []


def _needs_arranging(incident: Incident) -> bool:
    """Return whether the incident was never posted, or new findings may change where it belongs."""
    if incident.placement.message is None or incident.silenced is not None:
        return True
    cause = incident.findings.cause
    is_elsewhere = cause is not None and (cause.service != incident.service or cause.change is not None)
    is_triaged = incident.severity is Severity.CRITICAL and incident.stage is Stage.EXPLAINING
    return incident.part_of is None and (
        is_elsewhere or is_triaged or incident.relation(RelationKind.MAY_BE_PART_OF) is not None
    )


async def _near(incident: Incident, company: Company, transaction: Transaction) -> list[Incident]:
    """Return the visible open incidents that may be related.

    Empty if the incident is closed, silenced or already merged.
    """
    if incident.silenced is not None or incident.part_of is not None or incident.state is not IncidentState.OPEN:
        return []
    services = related_services(incident, company.dependencies) | unanswering(incident)
    since = min(incident.started_at, incident.opened_at) - REPEATED_WITHIN
    others = await transaction.incidents.near(incident, services, since, MAX_NEAR)
    if incident.placement.message is None:
        latest = await transaction.incidents.latest_open(MAX_NEAR)
        others += [other for other in latest if abs(other.opened_at - incident.opened_at) <= MINUTES]
    near = {other.id: other for other in others if other.silenced is None and other.id != incident.id}
    return list(near.values())


async def _below(incident: Incident, others: Sequence[Incident], transaction: Transaction) -> list[str]:
    """Return the ids of those that are parts of an incident, directly or not."""
    return [other.id for other in others if await _is_part(other, incident, transaction)]


async def root_of(incident: Incident, transaction: Transaction) -> Incident:
    """Return the incident in whose message this one is shown: the last above it, or itself."""
    for _ in range(MAX_CHAIN):
        above = await transaction.incidents.get(incident.part_of.incident_id) if incident.part_of is not None else None
        if above is None:
            break
        incident = above
    return incident


async def _free_independent(incident: Incident, ports: Ports) -> Incident:
    """Separate the provisional parts with another cause, once the investigation of the incident above them is over, and
    with each the others on its service. Returns the incident, which may be above or one of them, as it is then.
    """

    async def freed(part: Incident, transaction: Transaction) -> Incident:
        is_here = part.part_of is not None and part.part_of.incident_id == above_id
        return await separate(part, above, transaction, ports.clock.now()) if is_here else part

    above_id = incident.part_of.incident_id if incident.part_of is not None else incident.id
    async with ports.store.transaction() as transaction:
        above = incident if above_id == incident.id else await transaction.incidents.get(above_id)
        merged = await transaction.incidents.merged_into(above_id, PART)
        parts = [
            part for part in merged if part.part_of and part.part_of.provisional and part.state is IncidentState.OPEN
        ]
    if above is None or above.stage is not Stage.DONE:
        return incident
    whole, *others = profiles([above, *parts], ports.company.dependencies)
    apart = [other.incident for other in others if is_independent(other, whole)]
    services = {part.service for part in apart if part.service}
    for part in parts:
        if part in apart or part.service in services:
            changed = await change_incident(part.id, freed, ports.store, part)
            incident = changed if part.id == incident.id else incident
    return incident


async def is_investigated(incident: Incident, transaction: Transaction) -> bool:
    """Return whether an incident is investigated without being asked to: not while it is silenced or a part of another.

    Of the provisional parts on one service, the first is; none on the service of the incident above them.
    """
    merge = incident.part_of
    if incident.silenced is not None or merge is None or not merge.provisional:
        return incident.silenced is None and merge is None
    above = await transaction.incidents.get(merge.incident_id)
    parts = await transaction.incidents.merged_into(merge.incident_id, PART)
    of_service = [part.id for part in parts if part.service == incident.service]
    return (above is None or above.service != incident.service) and of_service[:1] == [incident.id]


async def _is_part(other: Incident, incident: Incident, transaction: Transaction) -> bool:
    """Return whether `incident` is an ancestor of `other`. Merging it into `other` would hide both."""
    above: Incident | None = other
    for _ in range(MAX_CHAIN):
        if above is None or above.part_of is None:
            return False
        if above.part_of.incident_id == incident.id:
            return True
        above = await transaction.incidents.get(above.part_of.incident_id)
    return True


async def _merge(
    incident: Incident, parent: Incident, relation: Relation, transaction: Transaction, now: datetime
) -> Incident:
    merged = incident.without_relation(RelationKind.MAY_BE_PART_OF).with_relation(relation)
    part = await save_next(merged, incident, transaction)
    await unlist(part, transaction, now)
    for each in (part, parent):
        await ask_to_present(each, transaction, now)
    return part


async def _update_silence(
    incident: Incident, silences: Sequence[Silence], company: Company, transaction: Transaction, now: datetime
) -> Incident:
    """Save the incident's current silence. An incident that is no longer silenced is investigated."""
    silenced = silenced_now(incident, silences, company.teams, now)
    if silenced == incident.silenced or incident.state is not IncidentState.OPEN:
        return incident
    changed = await save_next(replace(incident, silenced=silenced), incident, transaction)
    if silenced is None and changed.stage is not Stage.DONE:
        await transaction.tasks.add(investigate_task(changed))
    await ask_to_present(changed, transaction, now)
    return changed


async def _freed(incident: Incident, transaction: Transaction, now: datetime) -> Incident:
    """Separate an incident from a parent that was resolved a while ago: the parent did not explain it."""
    if incident.part_of is None:
        return incident
    parent = await transaction.incidents.get(incident.part_of.incident_id)
    if parent is not None and (parent.resolved_at is None or now - parent.resolved_at < MINUTES):
        return incident
    return await separate(incident, parent, transaction, now)


async def separate(incident: Incident, parent: Incident | None, transaction: Transaction, now: datetime) -> Incident:
    """Separate a merged incident permanently, resume its investigation and update both messages."""
    if incident.part_of is None:
        return incident
    apart = Relation(RelationKind.APART_FROM, incident.part_of.incident_id)
    separated = incident.without_relation(RelationKind.PART_OF).with_relation(apart)
    alone = await save_next(separated, incident, transaction)
    await transaction.tasks.add(details_task(alone) if alone.stage is Stage.DONE else investigate_task(alone))
    for each in (alone, parent):
        if each is not None:
            await ask_to_present(each, transaction, now)
    return alone
