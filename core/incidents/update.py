"""The draft of an update for people outside the teams: what is affected since when, what is done, when the next word comes.

It names no person, no team and no technical detail: a person edits it, and knows what may be said.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from core.incidents.incident_view import format_duration
from core.model.alert import Severity
from core.model.explanation import Origin
from core.model.incident import Incident

MAX_SERVICES = 3  # that are named
SOMETHING = "one of our systems"
EFFECT = {
    Severity.CRITICAL: "does not work, or not reliably",
    Severity.WARNING: "may be slower or less reliable than usual",
    Severity.INFO: "works, with a minor problem",
}
NEXT_WORD = {
    Severity.CRITICAL: timedelta(minutes=30),
    Severity.WARNING: timedelta(hours=1),
    Severity.INFO: timedelta(hours=4),
}
CAUSES = {
    Origin.CHANGE: "A recent change of ours may be the reason, and is being checked.",
    Origin.EXTERNAL: "The reason may lie with a supplier, which is being checked.",
    Origin.LOAD: "The reason may be unusually high demand, which is being checked.",
}
PROBABLE = "We have a probable reason, and are checking it."
LOOKING = "We are looking for the reason."
TAKEN = "Our experts are working on it."
FINDING = "We are bringing in the experts for it."


def draft_update(incident: Incident, now: datetime) -> tuple[str, str]:
    """Return the title and the text of a draft."""
    thing = _affected(incident)
    since = _moment(incident.started_at)
    if incident.resolved_at is not None and incident.is_cured:
        lasted = format_duration(incident.resolved_at - incident.started_at)
        return _title(thing, "works again"), (
            f"What was affected: {thing}, from {since} to {_moment(incident.resolved_at)} ({lasted}).\n\n"
            "What was done: the problem is solved, and we are watching that it stays so.\n\n"
            "Next update: none, unless the problem comes back."
        )
    cause = incident.findings.cause
    reason = CAUSES.get(cause.origin, PROBABLE) if cause is not None else LOOKING
    return _title(thing, "we are working on a problem"), (
        f"What is affected: {thing} {EFFECT[incident.severity]}, since {since}.\n\n"
        f"What is being done: {TAKEN if incident.taken_by else FINDING} {reason}\n\n"
        f"Next update: by {_moment(now + NEXT_WORD[incident.severity])}, or earlier if something changes."
    )


def _affected(incident: Incident) -> str:
    """Return the affected services as words; a general name if none is known."""
    named = dict.fromkeys(each for each in (incident.service, *(alert.service for alert in incident.alerts)) if each)
    words = [" ".join(name.replace("-", " ").replace("_", " ").split()) for name in named][:MAX_SERVICES]
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:]))) or SOMETHING


def _title(thing: str, state: str) -> str:
    return f"{thing[:1].upper()}{thing[1:]}: {state}"


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%d %B, %H:%M} UTC"
