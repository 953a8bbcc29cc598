"""An app that may read what stands in a team, and posts of its own that it is in doubt about."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from core.model.conversation import MessageReference, Place, Platform
from core.model.errors import ChatUnavailable
from core.model.messages import Notice
from tests.fakes.teams_adapter import TeamsAdapter, open_teams
from tests.fakes.teams_connector import APP_ID, CHANNEL, GROUP_CHAT, TEAM, TENANT, Failure

CHANNEL_PLACE = Place(Platform.TEAMS, CHANNEL, workspace=TENANT)
ROOT = "1700000000001"
THREAD = replace(CHANNEL_PLACE, thread=ROOT)
CHAT = Place(Platform.TEAMS, GROUP_CHAT, GROUP_CHAT, TENANT)
HELLO = Notice("hello")


@pytest.fixture
async def teams() -> AsyncIterator[TeamsAdapter]:
    """An app that was added to a team, whose owner consented."""
    async with open_teams("builtin") as teams:
        teams.connector.graph.consented = True
        added = {"type": "conversationUpdate", "membersAdded": [{"id": f"28:{APP_ID}"}]}
        await teams.deliver(teams.connector.activity(**added, conversation=conversation_of(TEAM)))
        yield teams


def conversation_of(id_: str, kind: str = "channel") -> dict[str, Any]:
    return {"id": id_, "conversationType": kind, "tenantId": TENANT}


async def lost_post(teams: TeamsAdapter, place: Place = CHANNEL_PLACE, intent: str = "intent") -> MessageReference:
    """A post that Teams took although it answered that it did not."""
    teams.connector.failures = [Failure(504, taken=True)]
    with pytest.raises(ChatUnavailable):
        await teams.messenger.post(place, HELLO, intent)
    return MessageReference(place, teams.connector.sent[-1].id)


def asked_of_graph(teams: TeamsAdapter) -> list[str]:
    """What Graph was asked for, without the query."""
    return [request.partition("?")[0] for request in teams.connector.graph.refusals.requests]
