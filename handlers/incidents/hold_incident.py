"""Hold incidents: during a channel's quiet hours, while they seem to need nobody, and in a storm.

In the morning, a summary tells of the incidents below the channel's threshold severity that quiet hours held, and of
those that were held back because they seemed to need nobody, and that nobody heard of.

A channel has a limit of new messages about incidents: the others are listed in one message, the storm's summary. The
decision for each incident and channel is stored, so that a restart in the middle of a storm changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime, time, timedelta

from core.incidents.handover import EMPTY, ListedIncident, entry, first_entries, storm_summary
from core.model.alert import Severity
from core.model.conversation import Place
from core.model.errors import ChatBusy, ConfigurationError, QuietNow, Unavailable, Undeliverable
from core.model.incident import Incident, IncidentState, Stage
from core.model.messages import Notice
from core.model.silences import QuietHours
from core.ports import HeldIncident, Store, Task, Transaction
from handlers.common.ports import Ports
from handlers.common.post_message import Poster
from handlers.incidents.open_incident import UPDATE_TIMEOUT

SUMMARY = "Good morning. While it was quiet here:"
MAX_SHOWN = 15  # incidents listed in a summary; the others are counted
MORNING = QuietHours(time(20), time(8))  # its end is when a channel without quiet hours hears of what was held back
PRESENT_HELD = "present_held"  # the workflow that posts an incident that was held or listed, with its details
MAX_TITLE = 120  # characters


async def admit_message(intent: str, incident: Incident, place: Place, ports: Ports) -> tuple[bool, bool]:
    """Return whether the incident's message may be posted or edited in a place, and whether the incident is held there.

    What was posted before the incident was held is edited. `intent` is that of the message in the place.
    """
    waits = await _hold(incident, place, ports)
    is_posted = incident.placement.message is not None and place == incident.placement.place
    is_posted = is_posted or await ports.poster.is_posted(intent, place)
    return is_posted or (not waits and await _may_be_posted(intent, incident, place, ports)), waits


async def _hold(incident: Incident, place: Place, ports: Ports) -> bool:
    """Hold the incident if it is held back, or the place's quiet hours apply to it now. Returns whether it is held."""
    now = ports.clock.now()
    is_held_back = incident.is_held_back(now)
    async with ports.store.transaction() as transaction:
        quiet = (await transaction.channel_settings.get(place)).quiet
        if (quiet is not None and quiet.hold(incident.severity, now)) or (is_held_back and _is_open(incident)):
            await transaction.held_incidents.hold(incident.id, place, now)
            return True
        if not is_held_back and incident.findings.held_until is not None:
            await transaction.held_incidents.release(incident.id, place)
        return is_held_back


def _is_open(incident: Incident) -> bool:
    return incident.state is IncidentState.OPEN


async def _may_be_posted(intent: str, incident: Incident, place: Place, ports: Ports) -> bool:
    """Return whether a new message about an incident that is not held may be posted: not if it was held until it was
    over, nor in a storm, whose summary lists it.
    """
    if incident.state is IncidentState.RESOLVED:
        async with ports.store.transaction() as transaction:
            was_held = place in await transaction.held_incidents.places(incident.id)
            if was_held and await transaction.held_incidents.listing(incident.id, place) is None:
                return False
    return not await _is_listed(intent, incident, place, ports)


async def is_anything_held(*, store: Store) -> bool:
    """Return whether any incident is held for any channel."""
    async with store.transaction() as transaction:
        return bool(await transaction.held_incidents.waiting())


async def wait_for_morning(place: Place, ports: Ports) -> None:
    """Raise QuietNow during the place's quiet hours. For messages that are not urgent."""
    async with ports.store.transaction() as transaction:
        quiet = (await transaction.channel_settings.get(place)).quiet
    now = ports.clock.now()
    if quiet is not None and quiet.cover(now):
        left = max(quiet.left(now), timedelta(minutes=1))
        raise QuietNow(f"The channel {place.channel} is quiet from {quiet}.", left.total_seconds())


async def end_quiet_hours(ports: Ports) -> None:
    """Post a summary in every place whose quiet hours are over, and release the incidents held for it.

    What was held back waits for the morning: the end of the place's quiet hours, or MORNING. An incident that is
    resolved and was never posted there appears only in the summary. If chats are unavailable, raises the first error
    after all places were tried.
    """
    failures: list[Unavailable] = []
    async with ports.store.transaction() as transaction:
        waiting = await transaction.held_incidents.waiting()
    for place in dict.fromkeys(each.place for each in waiting):
        async with ports.store.transaction() as transaction:
            quiet = (await transaction.channel_settings.get(place)).quiet
            rows = [
                (each, await transaction.incidents.get(each.incident_id)) for each in waiting if each.place == place
            ]
        now = ports.clock.now()
        due = [(each, it) for each, it in rows if it is not None and _is_due(each, it, quiet, now)]
        if due and (quiet is None or not quiet.cover(now)):
            # A digest of the held incidents, so that a run repeated after a crash posts no second summary.
            since = sorted((each.incident_id, each.held_at.isoformat()) for each, _ in due)
            summary = hashlib.blake2b(repr(since).encode(), digest_size=8).hexdigest()
            try:
                await _report(place, [incident for _, incident in due], summary, ports.store, ports.poster)
            except Unavailable as error:
                failures.append(error)
    if failures:
        raise failures[0]


def _is_due(held: HeldIncident, incident: Incident, quiet: QuietHours | None, now: datetime) -> bool:
    """Return whether a held incident may be reported: one that was held back, after the morning that followed."""
    if not incident.is_held_back(now):
        return True
    quiet = quiet or MORNING
    return held.held_at + quiet.left(held.held_at) <= now


async def _report(place: Place, held: Sequence[Incident], summary: str, store: Store, poster: Poster) -> None:
    incidents = sorted(held, key=lambda incident: (incident.started_at, incident.id))
    intent = f"quiet-summary:{place.platform}:{place.channel}:{summary}"
    if incidents:
        # If the chat refuses the summary, the open incidents are still posted.
        with suppress(Undeliverable, ConfigurationError):
            lines = first_entries([entry(_line(incident)) for incident in incidents], MAX_SHOWN)
            await poster.post_once(intent, place, Notice("\n".join([SUMMARY, *(line.text for line in lines)])))
    async with store.transaction() as transaction:
        for incident in incidents:
            if incident.state is IncidentState.RESOLVED and incident.placement.message is None:
                await transaction.held_incidents.mark_reported(incident.id, place)
                continue
            await transaction.held_incidents.release(incident.id, place)
            await transaction.tasks.add(Task(f"present-held:{incident.id}:{summary}", PRESENT_HELD, incident.id, {}))


def _line(incident: Incident) -> str:
    title = incident.title if len(incident.title) <= MAX_TITLE else f"{incident.title[: MAX_TITLE - 1]}…"
    why = ", held back because it seemed to need nobody" if incident.findings.held_until is not None else ""
    if incident.resolved_at is not None:
        span = f"{incident.started_at:%H:%M} to {incident.resolved_at:%H:%M} UTC"
        return f"{title} ({incident.severity}, {incident.state_text('over')}: {span}{why})"
    return f"{title} ({incident.severity}, open since {incident.started_at:%H:%M} UTC)"


PRESENT_STORM = "present_storm"  # the workflow that shows a summary
MINUTE = timedelta(minutes=1)
PATIENCE = timedelta(minutes=10)  # after which an incident that is still open gets its own message
CALM = timedelta(minutes=10)  # without a new incident in the summary, after which the next one begins another summary
WATCHED = timedelta(days=1)  # after its last incident, in which a storm is looked after
MAX_READ = 300  # incidents of a storm that are read for its summary; further ones are counted
MAX_PARTS = 500
ROUND = 1.0  # seconds between edits while further changes arrive


async def _is_listed(intent: str, incident: Incident, place: Place, ports: Ports) -> bool:
    """Return whether a storm's summary lists the incident in this place, instead of a message of its own.

    It does if the channel had its new messages of this minute, and until the incident is due for its own (see
    `_is_due_alone`) and the channel has room again. A critical one is listed first. `intent` is that of the incident's
    message there.
    """
    now = ports.clock.now()
    lock = ports.store.lock(f"new messages in {place.platform}:{place.channel}")
    async with lock, ports.store.transaction() as transaction:
        listing = await transaction.held_incidents.listing(incident.id, place)
        own = ports.paging.messages_per_minute - 1  # the summary is one of them
        waits = listing is not None and not await _is_due_alone(incident, listing, own, transaction, now)
        if not waits and await transaction.posts.admit(intent, place, now, now - MINUTE, own):
            if listing is not None:
                await transaction.held_incidents.release(incident.id, place)
                await transaction.tasks.add(details_task(incident))
                await _ask_to_show(listing.storm, place, transaction, now)
            return False
        if listing is None:
            storm = await _storm_at(place, transaction, now)
            await transaction.held_incidents.hold(incident.id, place, now, storm)
        else:
            storm = listing.storm
        await _ask_to_show(storm, place, transaction, now)
        return True


async def _is_due_alone(
    incident: Incident, listing: HeldIncident, own: int, transaction: Transaction, now: datetime
) -> bool:
    """Return whether a listed incident should get its own message: a cause of its own was found, it goes on for long, or
    there are so few that a minute later the channel has room for all of them.
    """
    if incident.state is not IncidentState.OPEN or incident.part_of is not None:
        return False
    cause = incident.findings.cause
    waited = now - listing.held_at
    if waited >= PATIENCE or (cause is not None and incident.stage is Stage.DONE):
        return True
    return waited >= MINUTE and len(await transaction.held_incidents.listed(listing.storm)) <= own


async def _storm_at(place: Place, transaction: Transaction, now: datetime) -> str:
    """Return the storm that goes on in a channel, or the name of a new one, which is the intent of its summary."""
    going_on = await transaction.held_incidents.storms(now - CALM)
    channel = f"{place.platform}:{place.channel}"
    here = [storm for storm, at in going_on.items() if f"{at.platform}:{at.channel}" == channel]
    return here[-1] if here else f"storm:{channel}:{now:%Y%m%dT%H%M%S}"


async def _ask_to_show(storm: str, place: Place, transaction: Transaction, at: datetime) -> None:
    """Queue an update of the summary, unless one is already pending."""
    pending_updates = await transaction.posts.mark_stale(storm, place, at, UPDATE_TIMEOUT)
    if pending_updates is not None:
        task = Task(f"{PRESENT_STORM}:{storm}:{pending_updates}", PRESENT_STORM, storm, asdict(place))
        await transaction.tasks.add(task)


async def unlist(incident: Incident, transaction: Transaction, at: datetime) -> None:
    """Take an incident that became a part of another one out of the summaries that list it."""
    for place in incident.placement.places:
        listing = await transaction.held_incidents.listing(incident.id, place)
        if listing is not None:
            await transaction.held_incidents.release(incident.id, place)
            await _ask_to_show(listing.storm, place, transaction, at)


async def present_storm(storm: str, place: Place, ports: Ports) -> None:
    """Post a storm's summary, or edit it if it is out of date.

    Raises ChatBusy if further changes arrived in the meantime, so that a storm causes successive edits and no queue.
    """
    async with ports.poster.one_at_a_time(storm):
        async with ports.store.transaction() as transaction:
            pending_updates = await transaction.posts.pending_updates(storm)
            rows = await transaction.held_incidents.listed(storm)
            listed = [await _listed(each, transaction) for each in rows[:MAX_READ]]
        text = _text(rows, [each for each in listed if each is not None], ports.paging.messages_per_minute)
        version = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        await ports.poster.post_or_edit(storm, place, Notice(text), version)
        async with ports.store.transaction() as transaction:
            is_current = await transaction.posts.mark_current(storm, pending_updates)
        if not is_current:
            raise ChatBusy(f"More incidents arrived while {storm} was being shown.", ROUND)


def _text(rows: Sequence[HeldIncident], listed: Sequence[ListedIncident], limit: int) -> str:
    if not rows:
        return EMPTY
    return storm_summary(listed, len(rows) - len(listed), rows[0].held_at, rows[-1].held_at + PATIENCE, limit)


async def _listed(held: HeldIncident, transaction: Transaction) -> ListedIncident | None:
    incident = await transaction.incidents.get(held.incident_id)
    if incident is None:
        return None
    parts = await transaction.incidents.merged_into(incident.id, MAX_PARTS)
    return ListedIncident(incident, incident.alert_count + sum(part.alert_count for part in parts))


async def watch_storms(ports: Ports) -> None:
    """Post the listed incidents that are due, the worst first, as many as their channel has room for."""
    now, own = ports.clock.now(), ports.paging.messages_per_minute - 1
    async with ports.store.transaction() as transaction:
        for storm in await transaction.held_incidents.storms(now - WATCHED):
            rows = (await transaction.held_incidents.listed(storm))[:MAX_READ]
            listed = [(row, await transaction.incidents.get(row.incident_id)) for row in rows]
            still_open = [(row, each) for row, each in listed if each is not None and each.state is IncidentState.OPEN]
            due = [each for row, each in still_open if await _is_due_alone(each, row, own, transaction, now)]
            for incident in sorted(due, key=_worst_first)[:own]:
                await transaction.tasks.add(details_task(incident, f"{now:%Y%m%dT%H%M}"))


def details_task(incident: Incident, when: str = "alone") -> Task:
    """Return the task that posts an incident that had no message of its own, with its details."""
    return Task(f"present-listed:{incident.id}:{when}", PRESENT_HELD, incident.id, {})


def _worst_first(incident: Incident) -> tuple[int, datetime, str]:
    return [*Severity].index(incident.severity), incident.opened_at, incident.id
