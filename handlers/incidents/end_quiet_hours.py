"""Post, after quiet hours, one summary of the held incidents, and each open incident in its own message."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress

from core.model.conversation import Place
from core.model.errors import ConfigurationError, Unavailable, Undeliverable
from core.model.incident import Incident, IncidentState
from core.model.messages import Notice
from core.ports import Clock, HeldIncident, Store, Task
from handlers.questions.post_message import Poster

SUMMARY = "Good morning. While it was quiet here:"
MAX_TOLD = 15  # incidents listed in a summary; the others are counted
PRESENT_HELD = "present_held"  # the workflow that posts a held incident with its details
MAX_TITLE = 120  # characters


async def end_quiet_hours(*, store: Store, poster: Poster, clock: Clock) -> None:
    """Post a summary in every place whose quiet hours are over, and release the incidents held for it.

    An incident that is resolved and was never posted there appears only in the summary. If chats are unavailable,
    raises the first error after all places were tried.
    """
    failures: list[Unavailable] = []
    async with store.transaction() as transaction:
        waiting = await transaction.held_incidents.waiting()
    for place in dict.fromkeys(each.place for each in waiting):
        async with store.transaction() as transaction:
            quiet = (await transaction.channel_settings.get(place)).quiet
            held = [each for each in waiting if each.place == place]
            found = [await transaction.incidents.get(each.incident_id) for each in held]
        if quiet is None or not quiet.cover(clock.now()):
            try:
                await _report(place, [each for each in found if each is not None], _summary_of(held), store, poster)
            except Unavailable as error:
                failures.append(error)
    if failures:
        raise failures[0]


def _summary_of(held: Sequence[HeldIncident]) -> str:
    """Return a digest of the held incidents, so that a run repeated after a crash posts no second summary."""
    since = sorted((each.incident_id, each.held_at.isoformat()) for each in held)
    return hashlib.blake2b(repr(since).encode(), digest_size=8).hexdigest()


async def _report(place: Place, held: Sequence[Incident], summary: str, store: Store, poster: Poster) -> None:
    incidents = sorted(held, key=lambda incident: (incident.started_at, incident.id))
    intent = f"quiet-summary:{place.platform}:{place.channel}:{summary}"
    if incidents:
        with suppress(
            Undeliverable, ConfigurationError
        ):  # If the chat refuses the summary, the open incidents are still posted.
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
    if incident.resolved_at is not None:
        span = f"{incident.started_at:%H:%M} to {incident.resolved_at:%H:%M} UTC"
        return f"• {title} ({incident.severity}, over: {span})"
    return f"• {title} ({incident.severity}, open since {incident.started_at:%H:%M} UTC)"
