"""The handover at a change of shift: what is open, what nobody was told, what to watch and what is being changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from core.incidents.incident_layout import cut
from core.incidents.incident_view import format_owner
from core.incidents.storm_summary import MARKS, OVER
from core.model.incident import Incident, IncidentState, Severity
from core.ports import Change

MAX_TITLE = 90  # characters
MAX_REASON = 140  # characters
MAX_LISTED = 8  # lines of a section; the others are counted
MAX_TEXT = 3000  # characters that every chat shows in one message
FRESH = timedelta(hours=1)  # after its end, an incident may come back

OPEN, HELD, WATCH, CHANGES, ON_CALL = "Open", "Held back", "Watch", "Changes", "On call now"
NOTHING = "Nothing is open, nothing was held back, and nothing changed."


@dataclass(frozen=True, slots=True)
class Shift:
    """The part of an ending shift that a channel may read. All texts are untrusted.

    `incidents` are those that were open in it. `held` are the ids of those that were not posted, with the reason.
    `windows` are the open maintenance windows, `on_call` the people on duty now by team, `unread` the systems whose
    changes could not be read.
    """

    since: datetime
    until: datetime
    incidents: Sequence[Incident]
    held: dict[str, str]
    changes: Sequence[Change]
    windows: Sequence[str]
    on_call: Sequence[tuple[str, str]]
    unread: Sequence[str] = ()


def format_handover(shift: Shift) -> str:
    """Return the text of a handover."""
    shown = [each for each in shift.incidents if each.id not in shift.held and each.absorbed is None]
    opened = sorted(
        (each for each in shown if each.state is IncidentState.OPEN),
        key=lambda each: ([*Severity].index(each.severity), each.started_at),
    )
    watched = [(each, why) for each in shown if (why := _reason_to_watch(each, shift.until))]
    changes = [f"• Maintenance: {window}" for window in shift.windows]
    changes += [_change(each) for each in sorted(shift.changes, key=lambda each: each.at, reverse=True)]
    if shift.unread:
        changes.append(f"• {', '.join(shift.unread)} could not be read")
    sections = (
        (ON_CALL, [f"• {team}: {people}" for team, people in shift.on_call]),
        (OPEN, [_open(each) for each in opened]),
        (HELD, [_held(each, shift.held[each.id]) for each in shift.incidents if each.id in shift.held]),
        (WATCH, [f"• {_mark(each)} {cut(each.title, MAX_TITLE)}: {why}" for each, why in watched]),
        (CHANGES, changes),
    )
    lines = list(_sections(sections))
    if not any(entries for name, entries in sections if name != ON_CALL):
        lines.append(NOTHING)
    return cut_lines([f"Handover. The shift began {_moment(shift.since)}.", *lines])


def _sections(sections: Sequence[tuple[str, Sequence[str]]]) -> Iterator[str]:
    for name, entries in sections:
        if entries:
            more = len(entries) - MAX_LISTED
            yield f"{name}:"
            yield from entries[:MAX_LISTED]
            if more > 0:
                yield f"• and {more} more"


def cut_lines(lines: Sequence[str]) -> str:
    """Return the first lines that every chat shows in one message."""
    kept = list(lines)
    while sum(map(len, kept)) + len(kept) > MAX_TEXT:
        kept.pop()
    return "\n".join(kept)


def _open(incident: Incident) -> str:
    cause = incident.explanation.cause if incident.explanation is not None else None
    parts = (
        cut(incident.title, MAX_TITLE),
        f"since {_moment(incident.started_at)}",
        cut(incident.taken_by, MAX_TITLE) or format_owner(incident),
        f"possible cause: {cut(cause.short, MAX_REASON)}" if cause is not None else "no cause found",
        f"next: {cut(cause.next_step, MAX_REASON)}" if cause is not None and cause.next_step else "",
    )
    return f"• {_mark(incident)} {' · '.join(filter(None, parts))}"


def _held(incident: Incident, why: str) -> str:
    over = f", over since {incident.resolved_at:%H:%M} UTC" if incident.resolved_at is not None else ""
    return f"• {_mark(incident)} {cut(incident.title, MAX_TITLE)}: {cut(why, MAX_REASON)}{over}"


def _reason_to_watch(incident: Incident, now: datetime) -> str:
    if incident.flapping:
        return "it fires and resolves again and again"
    if incident.reopened_count and incident.state is IncidentState.OPEN:
        return f"it came back {incident.reopened_count} times" if incident.reopened_count > 1 else "it came back once"
    if incident.resolved_at is not None and now - incident.resolved_at <= FRESH:
        return f"over only since {incident.resolved_at:%H:%M} UTC"
    return ""


def _change(change: Change) -> str:
    by = f" by {change.author}" if change.author else ""
    service = f" of {change.service}" if change.service else ""
    return f"• {change.at.astimezone(UTC):%H:%M} UTC: {cut(f'{change.kind}{service}{by}: {change.title}', MAX_REASON)}"


def _mark(incident: Incident) -> str:
    return MARKS[incident.severity] if incident.state is IncidentState.OPEN else OVER


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%a %H:%M} UTC"
