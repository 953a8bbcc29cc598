"""Plumbline in the channel of incidents of a team, from a signed request to what the chat shows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from core.model.conversation import Channel, Person, Place, Platform
from core.model.messages import AnswerMessage
from tests.fakes.teams_adapter import TeamsAdapter, open_teams
from tests.fakes.teams_connector import CHANNEL, TENANT
from tests.samples import answer

SDKS = ("builtin", "botbuilder")
ASHA = Person(Platform.TEAMS, "5c1f-asha", "Asha Brandt")
THREAD = Place(Platform.TEAMS, CHANNEL, "1700000000001", TENANT)
ANSWER = AnswerMessage(answer())


def button(message: dict[str, Any], title: str) -> dict[str, Any]:
    """Return the action of a card with this title."""
    return next(action for action in message["actions"] if action["title"] == title)


@pytest.fixture(params=SDKS)
async def teams(request: pytest.FixtureRequest) -> AsyncIterator[TeamsAdapter]:
    channels = [Channel("incidents", {Platform.TEAMS: CHANNEL})]
    async with open_teams(request.param, channels=channels) as chat:
        yield chat


@pytest.fixture
async def chat() -> AsyncIterator[TeamsAdapter]:
    """One transport, where none is used."""
    async with open_teams("builtin", channels=[Channel("incidents", {Platform.TEAMS: CHANNEL})]) as chat:
        yield chat
