"""Rendering of incidents in Teams: the message, and the details in its thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC
from typing import Any

from adapters.teams.elements import (
    MAX_SUMMARY,
    SPACE,
    Card,
    Element,
    Run,
    SizeBudget,
    about_message,
    card,
    container,
    control_actions,
    dotted,
    heading,
    line,
    listing,
    note,
    plain,
    prose,
    refreshed,
    run,
)
from core.incidents.incident_details import DetailsSection, Entry, incident_details
from core.incidents.incident_layout import Line, Link, Mood
from core.incidents.incident_view import format_on_call, incident_view
from core.model.answer import EVIDENCE
from core.model.findings import AskedTeam
from core.model.incident import Incident, IncidentState
from core.model.messages import I_AM_UNSURE, IS_IT_YOURS, ON_CALL, OR, PING, IncidentMessage, OwnerPing, OwnerQuestion
from core.model.team import TAG

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
    shown = replace(shown, entities=_about(message.incident))
    return refreshed(shown) if message.incident.state is IncidentState.OPEN else shown


def details_card(incident: Incident, budget: SizeBudget) -> Card:
    sections = incident_details(incident)
    body = [element for section in sections for element in _section(section, budget)]
    shown = card(body or [heading("Nothing is known yet.")], (), f"Details: {incident.title}")
    return replace(shown, entities=_about(incident))


def _about(incident: Incident) -> tuple[dict[str, Any], ...]:
    explanation = incident.explanation
    return about_message(by_model=explanation is not None and explanation.engine != EVIDENCE)


def _line(shown: Line, budget: SizeBudget) -> list[Element]:
    limit = min(budget.characters, 400)
    text = [run(shown.text, limit, **SMALL)] if shown.subtle else prose(shown.text, limit)
    badge = [run(shown.badge, MAX_NAME, weight="Bolder", size="Small", color="Accent")]
    command = [_code(shown.code, MAX_SUMMARY)] if shown.code else []
    label = [run(shown.label, MAX_SUMMARY, isSubtle=True), SPACE] if shown.label else []
    return line([*label, *dotted(text, command, *([_page(link, budget)] for link in shown.links), badge)])


def _section(section: DetailsSection, budget: SizeBudget) -> list[Element]:
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
    elements = line([run("•", 1), SPACE, *dotted(at, source, prose(entry.text, limit))])
    return [*elements, *(line([_code(entry.quote, limit)], "None") if entry.quote else [])]


def _page(page: Link, budget: SizeBudget) -> Run:
    return run(page.text, min(budget.characters, MAX_NAME), url=page.url, size="Small")


def _code(text: str, limit: int) -> Run:
    return run(text, limit, fontType="Monospace", size="Small")


MAX_ON_CALL = 250  # characters


def call_card(message: OwnerPing | OwnerQuestion) -> Card:
    return _ping_card(message) if isinstance(message, OwnerPing) else _question_card(message)


def is_it_theirs(teams: Sequence[AskedTeam]) -> list[Run]:
    """Return the question to teams, by name."""
    before, after = IS_IT_YOURS.split("{team}")
    runs = [_words(before)]
    for index, team in enumerate(teams):
        runs += [_words(OR)] if index else []
        runs.append(run(team.team_name, MAX_NAME, weight="Bolder"))
        on_call = plain(format_on_call(team), MAX_ON_CALL)
        runs += [SPACE, _words(f"({on_call})")] if on_call else []
    return [*runs, _words(after)]


def _ping_card(ping: OwnerPing) -> Card:
    on_call = [run(f"{ON_CALL}: {', '.join(ping.on_call)}", MAX_SUMMARY)] if ping.on_call else []
    badge = run(ping.badge.text, MAX_SUMMARY, weight="Bolder", color="Accent")
    elements = line(dotted([run(PING, MAX_SUMMARY)], [badge], on_call))
    name = [] if ping.mention else line([run(ping.team_name, MAX_NAME, weight="Bolder")])
    shown = card([*name, *elements], (), f"{ping.team_name}: {PING}")
    return _mentioning([(ping.team_name, ping.mention)], shown)


def _question_card(question: OwnerQuestion) -> Card:
    teams = [team for team, _ in question.teams]
    names = OR.join(plain(team.team_name, MAX_NAME) for team in teams)
    body = [*line(is_it_theirs(teams)), *line([run(I_AM_UNSURE, MAX_SUMMARY)])]
    shown = card(body, (), IS_IT_YOURS.format(team=names))
    return _mentioning([(team.team_name, mention) for team, mention in question.teams], shown)


def _mentioning(teams: Sequence[tuple[str, str]], shown: Card) -> Card:
    """Return the card with a line of mentions of the teams that have one.

    A mention must be in a TextBlock; names are the only untrusted text there, and are stripped of markup.
    """
    entities = [_entity(name, mention) for name, mention in teams if mention]
    if not entities:
        return shown
    text = " ".join(entity["text"] for entity in entities)
    body = [{"type": "TextBlock", "text": text, "wrap": True}, *shown.content["body"]]
    return replace(shown, content=shown.content | {"msteams": {"width": "Full", "entities": entities}, "body": body})


def _entity(team_name: str, mention: str) -> dict[str, Any]:
    name = "".join(character for character in plain(team_name, MAX_NAME) if character.isalnum() or character in " -&")
    mentioned = {"id": mention.removeprefix(TAG), "name": name}
    mentioned |= {"type": "tag"} if mention.startswith(TAG) else {}
    return {"type": "mention", "text": f"<at>{name}</at>", "mentioned": mentioned}


def _words(text: str) -> Run:
    """Return a run that keeps the spaces around its words."""
    return {"type": "TextRun", "text": text}
