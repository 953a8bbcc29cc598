"""Rendering of owner pings in Teams: for the probable owner, or for the candidate teams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from adapters.teams.elements import MAX_SUMMARY, SPACE, Card, Run, card, dotted, line, plain, run
from core.incidents.incident_view import format_on_call
from core.model.incident import AskedTeam
from core.model.messages import I_AM_UNSURE, IS_IT_YOURS, ON_CALL, OR, PING, OwnerPing, OwnerQuestion
from core.model.team import TAG

MAX_NAME = 80  # characters
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
    said = line(dotted([run(PING, MAX_SUMMARY)], [badge], on_call))
    name = [] if ping.mention else line([run(ping.team_name, MAX_NAME, weight="Bolder")])
    shown = card([*name, *said], (), f"{ping.team_name}: {PING}")
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
