"""The message that lists the incidents of a storm that have no message of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from core.incidents.incident_layout import cut
from core.incidents.incident_view import format_owner
from core.model.alert import Severity
from core.model.incident import Incident, IncidentState
from core.model.layout import counted

MAX_TITLE = 90  # characters
MAX_LISTED = 30  # incidents with a line of their own, the worst first; the others are named by their services
MAX_SERVICES = 30  # services of the others
MAX_TEXT = 3000  # characters that every chat shows in one message
SHARED = ("cluster", "region", "zone", "node", "namespace")  # labels that are told if all incidents have the same value
MARKS = {Severity.CRITICAL: "🔴", Severity.WARNING: "🟠", Severity.INFO: "🔵"}
OVER, ENDED = "✅", "⚪"

HOW = "This channel gets at most {limit} new messages a minute. Each of these gets its own message when a cause of its own is found, or if it is still open at {until:%H:%M} UTC."
EMPTY = "Many alerts at once: each incident that was listed here has its own message now, or is a part of another one."
OVER_HOW = "All of them are over."
ENDED_HOW = "None of them is open. Whether all are over is unknown."


@dataclass(frozen=True, slots=True)
class ListedIncident:
    """An incident in a storm's summary, with the number of its alerts and those of its parts."""

    incident: Incident
    alert_count: int

    @property
    def is_open(self) -> bool:
        return self.incident.state is IncidentState.OPEN


def storm_summary(listed: Sequence[ListedIncident], more: int, since: datetime, until: datetime, limit: int) -> str:
    """Return the text of a storm's summary: how many incidents and alerts, why they are listed, and each of them.

    The open ones come first, and among them the worst. `more` were not read and are only counted. `limit` is the number of
    new messages in a minute. Untrusted.
    """
    ordered = sorted(listed, key=lambda each: (not each.is_open, [*Severity].index(each.incident.severity)))
    count, alerts = len(listed) + more, sum(each.alert_count for each in listed) + more
    still_open = sum(each.is_open for each in listed) + more
    head = f"Many alerts at once: {counted(count, 'more incident')} with {counted(alerts, 'alert')} since {since.astimezone(UTC):%H:%M} UTC, {still_open} still open."
    why = ENDED_HOW if any(each.incident.is_uncured for each in listed) else OVER_HOW
    if still_open:
        why = HOW.format(limit=limit, until=until.astimezone(UTC))
    lines = [f"{head} {_common([each.incident for each in listed])}".rstrip(), why]
    shown = [_line(each) for each in ordered[:MAX_LISTED]]
    while sum(map(len, (*lines, *shown))) + len(shown) > MAX_TEXT:
        shown.pop()
    left = ordered[len(shown) :]
    if left or more:
        services = list(dict.fromkeys(cut(each.incident.service or each.incident.title, MAX_TITLE) for each in left))
        named = ", ".join(services[:MAX_SERVICES])
        shown.append(f"• and {len(left) + more} more" + (f": {named}" if named else ""))
    return "\n".join((lines[0], *shown, why))


def _common(incidents: Sequence[Incident]) -> str:
    """Return “All are in cluster eu-1.” if all have the same label that says where; empty otherwise."""
    for name in SHARED:
        values = {incident.labels.get(name, "") for incident in incidents}
        if len(incidents) > 1 and len(values) == 1 and (value := values.pop()):
            return f"All are in {name} {cut(value, MAX_TITLE)}."
    return ""


def _line(listed: ListedIncident) -> str:
    incident = listed.incident
    alerts = f"{listed.alert_count} alerts" if listed.alert_count > 1 else ""
    service = incident.service if incident.service and incident.service not in incident.title else ""
    state = format_owner(incident) if listed.is_open else cut(incident.state_text("over"), MAX_TITLE)
    parts = (cut(incident.title, MAX_TITLE), service, alerts, state)
    return f"• {mark_of(incident)} {' · '.join(filter(None, parts))}"


def mark_of(incident: Incident) -> str:
    """Return the sign of an incident's severity, or of its end."""
    return OVER if incident.is_cured else ENDED if incident.is_uncured else MARKS[incident.severity]
