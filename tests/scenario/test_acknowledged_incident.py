"""Every chat says who acknowledged an incident in the monitoring system, and that it fires again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from io import StringIO

import pytest
from rich.console import Console

from adapters import terminal
from adapters.console.render import Renderer
from adapters.slack import render as slack
from adapters.teams import render as teams
from core.model.incident import Acknowledgement, Incident
from core.model.messages import IncidentMessage
from core.samples import START, alert, incident
from tests.fakes import adaptive_card, block_kit

NOON = START + timedelta(minutes=7)
HOSTILE = "<script>alert(1)</script> <!channel>"


def on_slack(shown: Incident) -> str:
    return "\n".join(block_kit.texts(slack.render(IncidentMessage(shown)).blocks))


def in_teams(shown: Incident) -> str:
    return "\n".join(adaptive_card.texts(teams.render(IncidentMessage(shown)).content))


def on_the_page(shown: Incident) -> str:
    renderer = Renderer(lambda: NOON, "Plumbline")
    return str(renderer.fragment("_incident.html", "card", IncidentMessage(shown), {}, "/"))


def in_the_terminal(shown: Incident) -> str:
    out = Console(file=StringIO(), width=200)
    out.print(terminal.render(IncidentMessage(shown)))
    assert isinstance(out.file, StringIO)
    return out.file.getvalue()


CHATS = [on_slack, in_teams, on_the_page, in_the_terminal]


def acknowledged(by: str) -> Incident:
    return incident(source="pagerduty", alerts=(replace(alert(), acknowledged=Acknowledgement(by, NOON)),))


@pytest.mark.parametrize("chat", CHATS)
def test_who_acknowledged_where_is_said(chat: Callable[[Incident], str]) -> None:
    shown = chat(acknowledged("Ada Quist"))
    assert "acknowledged" in shown.lower()
    assert "Ada Quist" in shown
    assert "in pagerduty" in shown
    assert "acknowledged" not in chat(incident()).lower()


@pytest.mark.parametrize("chat", CHATS)
def test_an_acknowledgement_by_nobody_in_particular_is_said_too(chat: Callable[[Incident], str]) -> None:
    assert "acknowledged" in chat(acknowledged("")).lower()


@pytest.mark.parametrize("chat", [on_slack, on_the_page])
def test_the_name_of_who_acknowledged_is_no_markup(chat: Callable[[Incident], str]) -> None:
    shown = chat(acknowledged(HOSTILE))
    assert "<script>" not in shown
    assert "<!channel>" not in shown


@pytest.mark.parametrize("chat", [on_slack, in_teams, on_the_page])
def test_an_incident_that_was_resolved_and_fires_says_so(chat: Callable[[Incident], str]) -> None:
    assert "again, first 09:30 UTC" in chat(incident(reopened_count=1))
    assert "again" not in chat(incident())
