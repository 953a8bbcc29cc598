"""An incident as each chat shows it, in text."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

from rich.console import Console

from adapters import terminal
from adapters.console.console import Renderer
from adapters.slack import render as slack
from adapters.teams import render as teams
from core.model.incident import Incident
from core.model.messages import IncidentMessage
from core.views import message_view
from tests.fakes import adaptive_card, block_kit
from tests.samples import START

NOON = START + timedelta(minutes=7)


def on_slack(shown: Incident) -> str:
    return "\n".join(block_kit.texts(slack.render(IncidentMessage(shown)).blocks))


def in_teams(shown: Incident) -> str:
    return "\n".join(adaptive_card.texts(teams.render(IncidentMessage(shown)).content))


def on_the_page(shown: Incident) -> str:
    renderer = Renderer(lambda: NOON, "Plumbline")
    return str(renderer.fragment("_view.html", "shown", message_view(IncidentMessage(shown)), "incidents", "1", {}))


def in_the_terminal(shown: Incident) -> str:
    out = Console(file=StringIO(), width=200)
    out.print(terminal.render(IncidentMessage(shown)))
    assert isinstance(out.file, StringIO)
    return out.file.getvalue()


CHATS = [on_slack, in_teams, on_the_page, in_the_terminal]
