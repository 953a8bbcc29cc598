"""The handover at a change of shift: what is open, what nobody was told, what to watch and what is being changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from core.incidents.incident_layout import cut
from core.incidents.incident_view import format_owner
from core.incidents.storm_summary import mark_of
from core.model.alert import Severity
from core.model.incident import Incident, IncidentState
from core.ports import Change

MAX_TITLE = 90  # characters
MAX_REASON = 140  # characters
MAX_LISTED = 8  # lines of a section; the others are counted
MAX_TEXT = 3000  # characters that every chat shows in one message
FRESH = timedelta(hours=1)  # after its end, an incident may come back

OPEN, HELD, WATCH, CHANGES, ON_CALL = "Open", "Held back", "Watch", "Changes", "On call now"
NOTHING = "Nothing is open, nothing was held back, and nothing changed."


@dataclass(frozen=True, slots=True)
class PostLine:
    """A line of a regular post. Untrusted.

    `incident_id` is that of the incident that it is about, if it is about one. `count` is the number of things that it
    tells of; 0 for a heading. `has_more` says that the rest stands elsewhere.
    """

    text: str
    incident_id: str = ""
    count: int = 1
    has_more: bool = False


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


def format_handover(shift: Shift) -> list[PostLine]:
    """Return the lines of a handover."""
    shown = [each for each in shift.incidents if each.id not in shift.held and each.part_of is None]
    opened = sorted(
        (each for each in shown if each.state is IncidentState.OPEN),
        key=lambda each: ([*Severity].index(each.severity), each.started_at),
    )
    watched = [(each, why) for each in shown if (why := _reason_to_watch(each, shift.until))]
    changes = [f"Maintenance: {window}" for window in shift.windows]
    changes += [_change(each) for each in sorted(shift.changes, key=lambda each: each.at, reverse=True)]
    if shift.unread:
        changes.append(f"{', '.join(shift.unread)} could not be read")
    sections = (
        (ON_CALL, [entry(f"{team}: {people}") for team, people in shift.on_call]),
        (OPEN, [entry(_open(each), each) for each in opened]),
        (HELD, [entry(_held(each, shift.held[each.id]), each) for each in shift.incidents if each.id in shift.held]),
        (WATCH, [entry(f"{mark_of(each)} {cut(each.title, MAX_TITLE)}: {why}", each) for each, why in watched]),
        (CHANGES, [entry(each) for each in changes]),
    )
    lines = list(_sections(sections))
    if not any(entries for name, entries in sections if name != ON_CALL):
        lines.append(PostLine(NOTHING))
    return cut_lines([PostLine(f"Handover. The shift began {_moment(shift.since)}.", count=0), *lines])


def entry(text: str, incident: Incident | None = None) -> PostLine:
    """Return a line of a list, which is one line whatever its text."""
    return PostLine(f"• {' '.join(text.split())}", incident.id if incident is not None else "")


def _sections(sections: Sequence[tuple[str, Sequence[PostLine]]]) -> Iterator[PostLine]:
    for name, entries in sections:
        if entries:
            yield PostLine(f"{name}:", count=0)
            yield from first_entries(entries, MAX_LISTED)


def first_entries(entries: Sequence[PostLine], limit: int) -> list[PostLine]:
    """Return the first `limit` lines, and one that counts the others."""
    return [*entries[:limit], *_more(entries[limit:])]


def cut_lines(lines: Sequence[PostLine]) -> list[PostLine]:
    """Return the first lines that every chat shows in one message, and one that counts the others."""
    shown = list(lines)
    while sum(len(line.text) + 1 for line in shown) > MAX_TEXT:
        kept = shown[:-2] if shown[-1].has_more else shown[:-1]
        while kept and (kept[-1].has_more or not kept[-1].count):  # nor a count before a count, nor a heading alone
            kept.pop()
        shown = [*kept, *_more(lines[len(kept) :])]
    return shown


def _more(left_out: Sequence[PostLine]) -> list[PostLine]:
    count = sum(line.count for line in left_out)
    return [PostLine(f"• and {count} more", count=count, has_more=True)] if count else []


def _open(incident: Incident) -> str:
    cause, explanation = incident.findings.cause, incident.findings.explanation
    parts = (
        cut(incident.title, MAX_TITLE),
        f"since {_moment(incident.started_at)}",
        cut(incident.taken_by, MAX_TITLE) or format_owner(incident),
        f"possible cause: {cut(cause.short, MAX_REASON)}" if cause is not None else "no cause found",
        f"next: {cut(explanation.next_step, MAX_REASON)}" if explanation is not None and explanation.next_step else "",
    )
    return f"{mark_of(incident)} {' · '.join(filter(None, parts))}"


def _held(incident: Incident, why: str) -> str:
    over = f", {_over(incident)} since {incident.resolved_at:%H:%M} UTC" if incident.resolved_at is not None else ""
    return f"{mark_of(incident)} {cut(incident.title, MAX_TITLE)}: {cut(why, MAX_REASON)}{over}"


def _over(incident: Incident) -> str:
    return cut(incident.state_text("over"), MAX_REASON)


def _reason_to_watch(incident: Incident, now: datetime) -> str:
    if incident.flapping:
        return "it fires and resolves again and again"
    if incident.reopened_count and incident.state is IncidentState.OPEN:
        return f"it came back {incident.reopened_count} times" if incident.reopened_count > 1 else "it came back once"
    if incident.resolved_at is None or (incident.is_cured and now - incident.resolved_at > FRESH):
        return ""
    return f"{_over(incident)}{' only' if incident.is_cured else ''} since {incident.resolved_at:%H:%M} UTC"


def _change(change: Change) -> str:
    by = f" by {change.author}" if change.author else ""
    service = f" of {change.service}" if change.service else ""
    return f"{change.at.astimezone(UTC):%H:%M} UTC: {cut(f'{change.kind}{service}{by}: {change.title}', MAX_REASON)}"


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%a %H:%M} UTC"
