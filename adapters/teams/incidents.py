"""Rendering of incidents in Teams: the message, and the details in its thread."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from adapters.teams.elements import (
    MAX_SUMMARY,
    SPACE,
    Card,
    Element,
    Run,
    SizeBudget,
    card,
    container,
    control_actions,
    dotted,
    heading,
    line,
    listing,
    note,
    prose,
    refreshed,
    run,
)
from core.incidents.incident_details import Entry, Section, incident_details
from core.incidents.incident_layout import Line, Link, Mood
from core.incidents.incident_view import incident_view
from core.model.incident import Incident, IncidentState
from core.model.messages import IncidentMessage

# Colours only repeat what the text says.
STYLES = {Mood.CRITICAL: "attention", Mood.WARNING: "warning", Mood.INFO: "accent", Mood.RESOLVED: "good"}
SIGNS = {Mood.CRITICAL: "▲", Mood.WARNING: "◆", Mood.INFO: "●", Mood.RESOLVED: "✓"}

MAX_NAME = 80  # characters
SMALL: dict[str, Any] = {"size": "Small", "isSubtle": True}


def incident_card(message: IncidentMessage, budget: SizeBudget) -> Card:
    view = incident_view(message)
    header = [
        *line([run(view.headline, min(budget.characters, MAX_SUMMARY), weight="Bolder", size="Large")]),
        *line([run(f"{SIGNS[view.mood]} {view.state}", MAX_SUMMARY, weight="Bolder", size="Small")]),
    ]
    body = [
        container(header, style=STYLES[view.mood], bleed=True),
        *(element for each in view.lines for element in _line(each, budget)),
        *note(view.progress, MAX_SUMMARY),
    ]
    shown = card(body, control_actions(view.buttons, view.judging, view.more), view.summary)
    return refreshed(shown) if message.incident.state is IncidentState.OPEN else shown


def details_card(incident: Incident, budget: SizeBudget) -> Card:
    sections = incident_details(incident)
    body = [element for section in sections for element in _section(section, budget)]
    return card(body or [heading("Nothing is known yet.")], (), f"Details: {incident.title}")


def _line(shown: Line, budget: SizeBudget) -> list[Element]:
    limit = min(budget.characters, 400)
    text = [run(shown.text, limit, **SMALL)] if shown.subtle else prose(shown.text, limit)
    badge = [run(shown.badge, MAX_NAME, weight="Bolder", size="Small", color="Accent")]
    command = [_code(shown.code, MAX_SUMMARY)] if shown.code else []
    label = [run(shown.label, MAX_SUMMARY, isSubtle=True), SPACE] if shown.label else []
    return line([*label, *dotted(text, command, *([_page(link, budget)] for link in shown.links), badge)])


def _section(section: Section, budget: SizeBudget) -> list[Element]:
    title = run(section.title, min(budget.characters, 300), weight="Bolder", size="Small")
    badge = [run(section.badge, MAX_NAME, weight="Bolder", size="Small", color="Accent")]
    return [
        *line(dotted([title], badge), "Medium"),
        *listing(section.entries, budget, section.noun, lambda entry: _entry(entry, budget)),
    ]


def _entry(entry: Entry, budget: SizeBudget) -> list[Element]:
    limit = min(budget.characters, 300)
    at = [_code(f"{entry.at.astimezone(UTC):%m-%d %H:%M:%S}", 20)] if entry.at is not None else []
    source = [_page(entry.link, budget)] if entry.link is not None else []
    said = line([run("•", 1), SPACE, *dotted(at, source, prose(entry.text, limit))])
    return [*said, *(line([_code(entry.quote, limit)], "None") if entry.quote else [])]


def _page(page: Link, budget: SizeBudget) -> Run:
    return run(page.text, min(budget.characters, MAX_NAME), url=page.url, size="Small")


def _code(text: str, limit: int) -> Run:
    return run(text, limit, fontType="Monospace", size="Small")
