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
from urllib.parse import quote

from core.incidents.handover import ListedIncident, entry, first_entries, storm_summary
from core.incidents.incident_layout import cut
from core.model.alert import Severity
from core.model.conversation import Place
from core.model.errors import ChatBusy, ConfigurationError, QuietNow, Unavailable, Undeliverable
from core.model.incident import Incident, IncidentState, Stage
from core.model.messages import Notice
from core.model.silences import QuietHours
from core.ports import HeldIncident, Store, Task, Transaction
from handlers.common.ports import Ports
from handlers.common.post_message import Poster, is_posted
from handlers.common.stored_incident import change_incident, incident_intent, intent_at, save_next
from handlers.incidents.open_incident import ask_to_update

SUMMARY = "Good morning. While it was quiet here:"
MAX_SHOWN = 15  # incidents listed in a summary; the others are counted
MORNING = QuietHours(time(20), time(8))  # its end is when a channel without quiet hours hears of what was held back
PRESENT_HELD = "present_held"  # the workflow that posts an incident that was held or listed, with its details
MAX_TITLE = 120  # characters


async def admit_message(intent: str, incident: Incident, place: Place, ports: Ports) -> tuple[bool, bool]:
    """Return whether the incident's message may be posted or edited in a place, and whether the incident is held there.

    What was posted before the incident was held is edited. `intent` is that of the message in the place.
    """
    async with ports.store.transaction() as transaction:
        waits = await _hold(incident, place, transaction, ports.clock.now())
        is_known = incident.placement.message is not None and place == incident.placement.place
        is_known = is_known or await is_posted(intent, transaction)
        if is_known and place.thread and (listing := await transaction.held_incidents.listing(incident.id, place)):
            await _ask_to_show(listing.storm, listing.place, transaction, ports.clock.now())
    return is_known or (not waits and await _may_be_posted(intent, incident, place, ports)), waits


async def _hold(incident: Incident, place: Place, transaction: Transaction, now: datetime) -> bool:
    """Hold the incident if it is held back, or the place's quiet hours apply to it now. Returns whether it is held."""
    is_held_back = incident.is_held_back(now)
    quiet = (await transaction.channel_settings.get(place)).quiet
    if (quiet is not None and quiet.hold(incident.severity, now)) or (
        is_held_back and incident.state is IncidentState.OPEN
    ):
        await transaction.held_incidents.hold(incident.id, place, now)
        return True
    if not is_held_back and incident.findings.held_until is not None:
        await transaction.held_incidents.release(incident.id, place)
    return is_held_back


async def _may_be_posted(intent: str, incident: Incident, place: Place, ports: Ports) -> bool:
    """Return whether a new message about an incident that is not held may be posted: not if it was held until it was
    over, nor in a storm, whose summary lists it.
    """
    if incident.state is IncidentState.RESOLVED:
        async with ports.store.transaction() as transaction:
            places = await transaction.held_incidents.places(incident.id)
            if place in places and await transaction.held_incidents.listing(incident.id, place) is None:
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
        raise QuietNow(
            f"The channel {place.channel} is quiet from {quiet}.", max(quiet.left(now), MINUTE).total_seconds()
        )


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
            held = sorted((it for _, it in due), key=lambda it: (it.started_at, it.id))
            try:
                await _report(place, held, summary, ports.store, ports.poster)
            except Unavailable as error:
                failures.append(error)
    if failures:
        raise failures[0]


def _is_due(held: HeldIncident, incident: Incident, quiet: QuietHours | None, now: datetime) -> bool:
    """Return whether a held incident may be reported: one that was held back, after the morning that followed."""
    return not incident.is_held_back(now) or held.held_at + (quiet or MORNING).left(held.held_at) <= now


async def _report(place: Place, held: Sequence[Incident], summary: str, store: Store, poster: Poster) -> None:
    intent = f"quiet-summary:{place.platform}:{place.channel}:{summary}"
    lines = first_entries([entry(_line(incident)) for incident in held], MAX_SHOWN)
    # If the chat refuses the summary, the open incidents are still posted.
    with suppress(Undeliverable, ConfigurationError):
        await poster.post_once(intent, place, Notice("\n".join([SUMMARY, *(line.text for line in lines)])))
    async with store.transaction() as transaction:
        for incident in held:
            if incident.state is IncidentState.RESOLVED and incident.placement.message is None:
                await transaction.held_incidents.mark_reported(incident.id, place)
            else:
                await transaction.held_incidents.release(incident.id, place)
                key = f"present-held:{incident.id}:{summary}"
                await transaction.tasks.add(Task(key, PRESENT_HELD, incident.id, {}))


def _line(incident: Incident) -> str:
    why = ", held back because it seemed to need nobody" if incident.findings.held_until is not None else ""
    if incident.resolved_at is not None:
        span = f"{incident.state_text('over')}: {incident.started_at:%H:%M} to {incident.resolved_at:%H:%M} UTC{why}"
    else:
        span = f"open since {incident.started_at:%H:%M} UTC"
    return f"{cut(incident.title, MAX_TITLE)} ({incident.severity}, {span})"


PRESENT_STORM = "present_storm"  # the workflow that shows a summary
MINUTE = timedelta(minutes=1)
GATHER = timedelta(seconds=3)  # between two looks at whether others make a storm of an incident
CALM = timedelta(minutes=10)  # without a new incident in the summary, after which the storm is over
WATCHED = timedelta(days=1)  # after its last incident, in which a storm is looked after
MAX_NEAR = 50  # latest open incidents among which those that a channel was told of are looked for
MAX_READ = 300  # incidents of a storm, and parts of one, that are read for its summary; further ones are counted
ROUND = 1.0  # seconds between edits while further changes arrive


async def _is_listed(intent: str, incident: Incident, place: Place, ports: Ports) -> bool:
    """Return whether a storm's summary lists the incident in this place, instead of a message of its own.

    It does as long as the storm lasts, unless the incident stands out. `intent` is that of the incident's message there.
    Raises ChatBusy for a moment if it takes the last room in the channel, so that what arrives with it is known.
    """
    now, own = ports.clock.now(), ports.paging.messages_per_minute - 1  # the summary is one of them
    async with ports.store.lock(f"new messages in {_channel(place)}"), ports.store.transaction() as transaction:
        latest = await transaction.held_incidents.latest(incident.id, place)
        listing = latest if latest is not None and latest.incident_id == incident.id else None
        storm = latest.storm if latest is not None and (listing or now - latest.held_at <= CALM) else ""
        is_in_thread = listing is not None and place == await _thread_of(storm, transaction)
        if is_in_thread or (not storm and await transaction.posts.admit(intent, place, now, now - CALM, 1)):
            return False  # it is the only critical one, or the first message for a while
        if storm:
            was_admitted = listing is None and await transaction.posts.admit(intent, place, now, now, 0)
            may_stand = was_admitted or await _stands_out(incident, transaction, ports)
        else:
            may_stand = await _has_room(incident, transaction, ports)
        if may_stand and await transaction.posts.admit(intent, place, now, now - MINUTE, 2 * own if storm else own):
            await _unlist(incident, listing, transaction, now)
            return False
        storm = storm or f"storm:{_channel(place)}:{now:%Y%m%dT%H%M%S}"
        if listing is None:
            await transaction.held_incidents.hold(incident.id, place, now, storm)
        await _ask_to_show(storm, place, transaction, now)
        return True


async def _thread_of(storm: str, transaction: Transaction) -> Place | None:  # in which the only critical one is
    post = await transaction.posts.find(storm)
    return post.reference.thread if post is not None and post.reference is not None else None


def _channel(place: Place) -> str:
    return f"{place.platform}:{place.channel}"


async def _has_room(incident: Incident, transaction: Transaction, ports: Ports) -> bool:
    """Return whether the channel has room for an incident outside of a storm, and for all of the same minute.

    There are few open incidents of the last CALM with a message, but neither a cause nor anybody who has them. What takes
    the last room waits for those that would make it a storm: a moment in a thread or if it is critical, else a minute, or
    until the next would be there if they came steadily, if that is soon.
    """
    now, own = ports.clock.now(), ports.paging.messages_per_minute - 1
    here = [each for each in await _open_here(incident, transaction) if now - each.opened_at <= CALM]
    posted = [each for each in here if each.placement.message is not None]
    unclear = sum(not _is_clear(each) for each in posted)
    gaps = [2 * abs(incident.opened_at - each.opened_at) for each in posted]
    minute = max([MINUTE, *(gap for gap in gaps if gap <= 3 * MINUTE)])
    with_it = [  # but not what is held for another reason than a storm, such as the night: it is no message of now
        each
        for each in here
        if each.placement.message is None
        and not (
            each.placement.place in await transaction.held_incidents.places(each.id)
            and await transaction.held_incidents.listing(each.id, each.placement.place) is None
        )
    ]
    if unclear + sum(abs(each.opened_at - incident.opened_at) <= minute for each in with_it) >= own:
        return False
    is_urgent = incident.severity is Severity.CRITICAL or incident.placement.place.thread is not None
    left = (GATHER if is_urgent else minute) - (now - incident.opened_at)
    if unclear == own - 1 > 0 and left > timedelta() and not _is_clear(incident):
        raise ChatBusy("Another incident was posted a moment ago.", min(left, GATHER).total_seconds())
    return True


async def _open_here(incident: Incident, transaction: Transaction, limit: int = MAX_NEAR) -> list[Incident]:
    """Return the latest other open incidents that are, or are to be, shown in the channel of this one."""
    latest, channel = await transaction.incidents.latest_open(limit), _channel(incident.placement.place)
    shown = [each for each in latest if each.part_of is None and each.silenced is None and each.id != incident.id]
    return [each for each in shown if _channel(each.placement.place) == channel]


def _is_clear(incident: Incident) -> bool:
    """Return whether somebody has the incident, or its cause is known."""
    return bool(incident.taken_by or incident.hops or (incident.stage is Stage.DONE and incident.findings.cause))


async def _stands_out(incident: Incident, transaction: Transaction, ports: Ports) -> bool:
    """Return whether an incident is open, and somebody has it, or its cause is known and no other message tells it.

    A cause that is only asked about does not count.
    """
    if incident.state is not IncidentState.OPEN or incident.part_of is not None or not _is_clear(incident):
        return False
    cause, explanation = incident.findings.cause, incident.findings.explanation
    if incident.taken_by or incident.hops or cause is None or explanation is None:
        return True
    causes = [
        each.findings.cause for each in await _open_here(incident, transaction) if each.placement.message is not None
    ]
    is_told = any(each is not None and (each.change, each.service) == (cause.change, cause.service) for each in causes)
    return not is_told and not ports.paging.policy.asks(explanation.badge)


async def _ask_to_show(storm: str, place: Place, transaction: Transaction, at: datetime) -> None:
    """Queue an update of the summary, unless one is already pending."""
    task = Task(f"{PRESENT_STORM}:{storm}", PRESENT_STORM, storm, asdict(place))
    await ask_to_update(storm, place, task, transaction, at)


async def unlist(incident: Incident, transaction: Transaction, at: datetime) -> None:
    """Take an incident that became a part of another one out of the summaries that list it."""
    for place in incident.placement.places:
        await _unlist(incident, await transaction.held_incidents.listing(incident.id, place), transaction, at)


async def _unlist(incident: Incident, listing: HeldIncident | None, transaction: Transaction, at: datetime) -> None:
    """Take an incident out of the summary that lists it, if one does, and post its own message, unless it is a part."""
    if listing is not None:
        await transaction.held_incidents.release(incident.id, listing.place)
        await transaction.tasks.add(details_task(incident))
        await _ask_to_show(listing.storm, listing.place, transaction, at)


async def present_storm(storm: str, place: Place, ports: Ports) -> None:
    """Post a storm's summary, or edit it if it is out of date.

    Raises ChatBusy if further changes arrived in the meantime, so that a storm causes successive edits and no queue.
    """
    async with ports.poster.one_at_a_time(storm):
        stands = await ports.poster.is_posted(storm) or await _takes_over(storm, place, ports)
        async with ports.store.transaction() as transaction:
            pending_updates = await transaction.posts.pending_updates(storm)
            rows = await transaction.held_incidents.listed(storm)
            read = [await _listed(each, transaction, ports.chats.public_url) for each in rows[:MAX_READ]]
            listed = [each for each in read if each is not None]
        lines = storm_summary(listed, len(rows) - len(listed), ports.company.dependencies)
        text, links = "\n".join(line.text for line in lines), tuple(line.url for line in lines)
        notice = Notice(text, links=links, times=tuple(sorted(each.since for each in listed)[:1]))
        if rows or stands:
            version = hashlib.blake2b(repr(notice).encode(), digest_size=16).hexdigest()
            posted = await ports.poster.post_or_edit(storm, place, notice, version)
            await _show_worst(listed, place, posted.thread, ports)
        async with ports.store.transaction() as transaction:
            is_current = await transaction.posts.mark_current(storm, pending_updates)
        if not is_current:
            raise ChatBusy(f"More incidents arrived while {storm} was being shown.", ROUND)


async def _listed(held: HeldIncident, transaction: Transaction, public_url: str) -> ListedIncident | None:
    incident = await transaction.incidents.get(held.incident_id)
    if incident is None:
        return None
    parts = await transaction.incidents.merged_into(incident.id, MAX_READ)
    own = next((alert.url for alert in incident.alerts if alert.url), "")
    url = f"{public_url.rstrip('/')}/incidents/{quote(incident.id, safe='')}" if public_url else own
    return ListedIncident(incident, sum(each.alert_count for each in (incident, *parts)), held.held_at, url)


async def _show_worst(listed: Sequence[ListedIncident], place: Place, thread: Place, ports: Ports) -> None:
    """Post in the summary's thread the only critical incident that it lists, if that is open."""

    async def placed(latest: Incident, transaction: Transaction) -> Incident:
        if latest.placement.place != place or latest.placement.message is not None:
            return latest
        await transaction.tasks.add(details_task(latest))
        return await save_next(latest.with_placement(place=thread), latest, transaction)

    critical = [each for each in listed if each.incident.severity is Severity.CRITICAL]
    if len(critical) == 1 < len(listed) and critical[0].is_open:
        await change_incident(critical[0].incident.id, placed, ports.store)


async def _takes_over(storm: str, place: Place, ports: Ports) -> bool:
    """List the first incident of a storm as well, if nobody has it, its cause is unknown, and it is shown here alone.

    The summary takes the place of its message, so that the channel has one message less. Returns whether it did.
    """

    async def listed(latest: Incident, transaction: Transaction) -> Incident:
        message, parts = latest.placement.message, await transaction.incidents.merged_into(latest.id, 1)
        if message is None or parts or latest.notes or latest.filings or _is_clear(latest) or latest.placement.also_in:
            return latest
        for intent in (incident_intent(latest.id), f"details:{latest.id}"):
            await transaction.posts.intend(intent, place)
            await transaction.posts.forget(intent)
        await transaction.posts.intend(storm, place)
        await transaction.posts.posted(storm, message, "")
        await transaction.held_incidents.hold(latest.id, place, ports.clock.now(), storm)
        return await save_next(latest.with_placement(message=None), latest, transaction)

    async with ports.store.transaction() as transaction:
        rows = await transaction.held_incidents.listed(storm)
        struck = await transaction.incidents.get(rows[0].incident_id) if rows else None
        here = await _open_here(struck, transaction, MAX_READ) if struck is not None else []
    unclear = [each for each in here if each.placement.message is not None and not _is_clear(each)]
    posted = [each for each in unclear if ports.clock.now() - each.opened_at <= CALM]
    if not posted or _channel(posted[-1].placement.place) != _channel(place):
        return False
    async with ports.poster.one_at_a_time(incident_intent(posted[-1].id)):
        return (await change_incident(posted[-1].id, listed, ports.store)).placement.message is None


async def watch_storms(ports: Ports) -> None:
    """Post the worst incident that is due of each summary, if its channel has room.

    Due is what stands out, and what is left of a storm that is over, if that is little.
    """
    now = ports.clock.now()
    async with ports.store.transaction() as transaction:
        storms = await transaction.held_incidents.storms(now - WATCHED)
    for storm, place in storms.items():
        async with ports.store.lock(f"new messages in {_channel(place)}"), ports.store.transaction() as transaction:
            await _unlist_worst(await transaction.held_incidents.listed(storm), place, transaction, ports)


async def _unlist_worst(rows: Sequence[HeldIncident], place: Place, transaction: Transaction, ports: Ports) -> None:
    now, own = ports.clock.now(), ports.paging.messages_per_minute - 1
    read = [(await transaction.incidents.get(row.incident_id), row) for row in rows[:MAX_READ]]
    still_open = [(each, row) for each, row in read if each is not None and each.state is IncidentState.OPEN]
    thread = await _thread_of(rows[0].storm, transaction)
    waiting = [(each, row) for each, row in still_open if each.placement.place != thread]
    is_over = now - max(row.held_at for row in rows) >= (CALM if len(rows) > own else MINUTE) and len(waiting) <= own
    for incident, row in waiting:
        is_due = await _stands_out(incident, transaction, ports) or (
            is_over and await _has_room(incident, transaction, ports)
        )
        if is_due and await transaction.posts.admit(intent_at(place, incident), place, now, now - MINUTE, own):
            await _unlist(incident, row, transaction, now)
            break


def details_task(incident: Incident) -> Task:
    """Return the task that posts an incident that had no message of its own, with its details."""
    return Task(f"present-listed:{incident.id}:{incident.revision}", PRESENT_HELD, incident.id, {})
