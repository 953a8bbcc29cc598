"""Alerts that ended and fire again: how often they did, and what was known about them the last time."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from core.model.conversation import Place
from core.model.incident import Incident, Recurrence, Resolution

COUNTED = timedelta(days=30)  # at most between an end and the next firing that is counted as the same
JOINED = timedelta(days=1)  # after an end, in which the next incident joins the old thread, unless set otherwise
WEEK = timedelta(days=6)  # in which a weekday alone names a day
_WORDS = ("", "", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def recurring(incident: Incident, last: Incident | None) -> Incident:
    """Return a new incident that counts the last one of its alert group, if that ended no longer ago than COUNTED."""
    ended = last and last.resolved_at
    if last is None or ended is None or incident.opened_at - ended > COUNTED:
        return incident
    before = last.recurrence or Recurrence("", 1, last.started_at)
    return replace(incident, recurrence=Recurrence(last.id, before.count + 1, before.since))


def old_thread(incident: Incident, last: Incident | None, within: timedelta) -> Place | None:
    """Return the thread of the last incident, if this one is shown there: in the same channel, `within` a time of its end.

    What a bot posted has a thread of its own.
    """
    message = last.placement.message if last is not None else None
    if last is None or last.resolved_at is None or message is None:
        return None
    is_here = replace(message.thread, thread=None) == incident.placement.place
    is_recent = incident.opened_at - last.resolved_at <= within
    return message.thread if is_here and is_recent else None


def known_before(last: Incident) -> str:
    """Return the cause and the fix of the last incident: what people said counts before what was found. Empty if unknown."""
    noted, explanation = last.resolution or Resolution(), last.findings.explanation
    summary = explanation.summary.rstrip(".") if explanation is not None and explanation.cause is not None else ""
    fix = f"fix: {noted.fix}" if noted.fix else ""
    return "; ".join(filter(None, (noted.root_cause or summary, fix)))


def format_count(incident: Incident) -> str:
    """Return “third time since Monday”; empty for the first time."""
    again = incident.recurrence
    if again is None:
        return ""
    times = f"{_WORDS[again.count]} time" if again.count < len(_WORDS) else f"{again.count} times"
    day = f"{again.since:%A}" if incident.opened_at - again.since < WEEK else f"{again.since.day} {again.since:%b}"
    return f"{times} today" if again.since.date() == incident.opened_at.date() else f"{times} since {day}"
