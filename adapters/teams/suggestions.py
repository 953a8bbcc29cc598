"""What is suggested about an incident in Teams: how severe it looks, and of which one it is probably another sign."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.teams.elements import ROOMS, Element, Room, Run, dotted, labelled, line, note, run
from core.confidence.badge import Badge
from core.incident import Incident
from core.incident_story import suggested_duplicate, suggested_severity
from core.messages import Verdict

MAX_NAME = 80  # characters
MAX_WHY = 200  # characters of the evidence


def suggestions(incident: Incident, room: Room) -> list[Element]:
    """A row for each. In the smallest room none: what is only suggested goes before what is known."""
    if room == ROOMS[-1]:
        return []
    return [*labelled("Severity", _severity(incident, room)), *labelled("Duplicate", _duplicate(incident, room))]


def suggestion_buttons(incident: Incident, room: Room) -> list[tuple[Verdict, str]]:
    """Yes and no to each suggestion that is shown, with the claim that it is."""
    offered: list[tuple[Verdict, str]] = []
    if incident.suggested_severity is not None and room != ROOMS[-1]:
        severity = incident.suggested_severity.prediction_id
        offered += [(Verdict.SEVERITY_RIGHT, severity), (Verdict.SEVERITY_WRONG, severity)]
    if incident.suggested_duplicate is not None and room != ROOMS[-1]:
        duplicate = incident.suggested_duplicate.prediction_id
        offered += [(Verdict.DUPLICATE_RIGHT, duplicate), (Verdict.DUPLICATE_WRONG, duplicate)]
    return offered


def _severity(incident: Incident, room: Room) -> list[Element]:
    suggestion = incident.suggested_severity
    said = run(suggested_severity(incident), min(room.characters, MAX_NAME))
    if suggestion is None:
        return line([said])
    return [*line(dotted([said], _badge(suggestion.badge))), *_why(suggestion.evidence[:1], room)]


def _duplicate(incident: Incident, room: Room) -> list[Element]:
    suggestion = incident.suggested_duplicate
    if suggestion is None:
        return []
    named = run(suggested_duplicate(incident), min(room.characters, MAX_WHY))
    shown = dotted([named], [] if incident.duplicate_of else _badge(suggestion.badge))
    return [*line(shown), *_why(suggestion.evidence, room)]


def _why(evidence: Sequence[str], room: Room) -> list[Element]:
    return note("; ".join(evidence), min(room.characters, MAX_WHY)) if evidence else []


def _badge(badge: Badge) -> list[Run]:
    return [run(badge.text, MAX_NAME, weight="Bolder", size="Small", color="Accent")]
