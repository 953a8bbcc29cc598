"""Quiet hours: hold incidents below a channel's threshold severity, and post a summary of them in the morning.

The summary also tells of incidents that were held back because they seemed to need nobody, and that nobody heard of.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, time, timedelta

from core.model.channel_settings import QuietHours
from core.model.conversation import Place
from core.model.errors import ConfigurationError, QuietNow, Unavailable, Undeliverable
from core.model.incident import Incident, IncidentState
from core.model.messages import Notice
from core.ports import HeldIncident, Store, Task, Transaction
from handlers.common.ports import Ports
from handlers.common.post_message import Poster

SUMMARY = "Good morning. While it was quiet here:"
MAX_TOLD = 15  # incidents listed in a summary; the others are counted
MORNING = QuietHours(time(20), time(8))  # its end is when a channel without quiet hours hears of what was held back
PRESENT_HELD = "present_held"  # the workflow that posts a held incident with its details
MAX_TITLE = 120  # characters


async def hold_incident(incident: Incident, place: Place, ports: Ports) -> bool:
    """Hold the incident if it is held back, or the place's quiet hours apply to it now. Returns whether it is held."""
    now = ports.clock.now()
    is_held_back = incident.is_held_back(now)
    async with ports.store.transaction() as transaction:
        quiet = (await transaction.channel_settings.get(place)).quiet
        if (quiet is not None and quiet.hold(incident.severity, now)) or (is_held_back and _is_open(incident)):
            await transaction.held_incidents.hold(incident.id, place, now)
            return True
        if not is_held_back and _was_held_back(incident):
            await transaction.held_incidents.release(incident.id, place)
        return is_held_back


def _is_open(incident: Incident) -> bool:
    return incident.state is IncidentState.OPEN


def _was_held_back(incident: Incident) -> bool:
    return incident.page is not None and incident.page.held_until is not None


async def is_held(incident: Incident, transaction: Transaction, now: datetime) -> bool:
    """Return whether the incident is held back, or is held for the channel in which it is first posted."""
    return incident.is_held_back(now) or incident.place in await transaction.held_incidents.places(incident.id)


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
            summary = _summary_of([each for each, _ in due])
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


def _summary_of(held: Sequence[HeldIncident]) -> str:
    """Return a digest of the held incidents, so that a run repeated after a crash posts no second summary."""
    since = sorted((each.incident_id, each.held_at.isoformat()) for each in held)
    return hashlib.blake2b(repr(since).encode(), digest_size=8).hexdigest()


async def _report(place: Place, held: Sequence[Incident], summary: str, store: Store, poster: Poster) -> None:
    incidents = sorted(held, key=lambda incident: (incident.started_at, incident.id))
    intent = f"quiet-summary:{place.platform}:{place.channel}:{summary}"
    if incidents:
        # If the chat refuses the summary, the open incidents are still posted.
        with suppress(Undeliverable, ConfigurationError):
            await poster.post_once(intent, place, Notice("\n".join([SUMMARY, *_lines(incidents)])))
    async with store.transaction() as transaction:
        for incident in incidents:
            if incident.state is IncidentState.RESOLVED and incident.message is None:
                await transaction.held_incidents.mark_reported(incident.id, place)
                continue
            await transaction.held_incidents.release(incident.id, place)
            await transaction.tasks.add(Task(f"present-held:{incident.id}:{summary}", PRESENT_HELD, incident.id, {}))


def _lines(incidents: Sequence[Incident]) -> list[str]:
    summary = [_line(each) for each in incidents[:MAX_TOLD]]
    missing = len(incidents) - MAX_TOLD
    return summary + ([f"• and {missing} more"] if missing > 0 else [])


def _line(incident: Incident) -> str:
    title = incident.title if len(incident.title) <= MAX_TITLE else f"{incident.title[: MAX_TITLE - 1]}…"
    why = ", held back because it seemed to need nobody" if _was_held_back(incident) else ""
    if incident.resolved_at is not None:
        span = f"{incident.started_at:%H:%M} to {incident.resolved_at:%H:%M} UTC"
        return f"• {title} ({incident.severity}, over: {span}{why})"
    return f"• {title} ({incident.severity}, open since {incident.started_at:%H:%M} UTC)"
