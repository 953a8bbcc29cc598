"""A post in Teams whose answer was lost is found again through Microsoft Graph."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from adapters.teams import history
from adapters.teams.elements import Card
from adapters.teams.history import LOOKED_BACK, marked
from core.model.conversation import Place, Platform
from core.model.messages import Notice
from tests import samples as messages
from tests.fakes.graph_server import graph_time
from tests.fakes.teams_adapter import TeamsAdapter
from tests.fakes.teams_connector import CHANNEL, GROUP, GROUP_CHAT, PERSONAL_CHAT, TENANT
from tests.scenario.teams_history import (
    CHANNEL_PLACE,
    CHAT,
    HELLO,
    ROOT,
    THREAD,
    asked_of_graph,
    conversation_of,
    lost_post,
    teams,
)

__all__ = ["teams"]  # the fixture


async def test_a_post_whose_answer_was_lost_is_found_although_nobody_ever_spoke_in_that_channel(
    teams: TeamsAdapter,
) -> None:
    reference = await lost_post(teams)
    assert CHANNEL not in teams.references.stored, "the team that has it has to be asked for"
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") == reference
    assert asked_of_graph(teams) == [f"/v1.0/teams/{GROUP}/channels/{CHANNEL}/messages"]


async def test_a_reply_is_looked_for_among_the_replies_of_its_thread(teams: TeamsAdapter) -> None:
    teams.connector.graph.post(CHANNEL, ROOT, "<p>the till is slow</p>")
    reference = await lost_post(teams, THREAD)
    assert await teams.messenger.find(THREAD, "intent") == reference
    assert asked_of_graph(teams) == [f"/v1.0/teams/{GROUP}/channels/{CHANNEL}/messages/{ROOT}/replies"]


async def test_in_a_group_chat_a_post_is_found_too(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity(conversation=conversation_of(GROUP_CHAT, "groupChat")))
    reference = await lost_post(teams, CHAT)
    await teams.messenger.post(CHAT, HELLO, "another")
    assert await teams.messenger.find(CHAT, "intent") == reference


async def test_in_a_personal_chat_graph_is_not_asked(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.personal())
    place = Place(Platform.TEAMS, PERSONAL_CHAT, PERSONAL_CHAT, TENANT)
    assert await teams.messenger.find(place, "intent") is None
    assert asked_of_graph(teams) == []


async def test_the_same_card_from_somebody_else_is_not_taken_for_ours(teams: TeamsAdapter) -> None:
    reference = await lost_post(teams)
    copied = dict(teams.connector.graph.messages[CHANNEL][reference.message_id])
    assert copied["attachments"]
    teams.connector.graph.delete(CHANNEL, reference.message_id)
    another = {"application": {"id": "another-app", "displayName": "Plumbline"}, "user": None}
    fields: dict[str, Any] = {"attachments": copied["attachments"], "from": another}
    teams.connector.graph.post(CHANNEL, "1799999999999", "", createdDateTime=graph_time(teams.clock.now()), **fields)
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") is None


async def test_a_message_of_ours_that_quotes_the_id_of_another_one_is_not_taken_for_it(teams: TeamsAdapter) -> None:
    card = marked(Card({"body": [{"type": "TextBlock", "text": "hello"}]}, ""), "intent")
    (element,) = card.content["body"]
    for number, quoted in enumerate((element["id"], json.dumps(element))):
        await teams.messenger.post(CHANNEL_PLACE, Notice(f"You asked: {quoted}"), f"another {number}")
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") is None


async def test_what_cannot_be_understood_does_not_end_the_search(teams: TeamsAdapter) -> None:
    teams.connector.graph.page_size = 1
    reference = await lost_post(teams)
    teams.connector.graph.post(CHANNEL, "1800000000001", "<p>hm</p>", createdDateTime="soon")
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") == reference


async def test_a_post_is_found_on_a_later_page_but_not_for_ever(
    teams: TeamsAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MAX_PAGES", 3)
    teams.connector.graph.page_size = 2
    reference = await lost_post(teams)
    now = graph_time(teams.clock.now())
    for number in range(5):
        teams.connector.graph.post(CHANNEL, f"180000000000{number}", "<p>hm</p>", createdDateTime=now)
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") == reference
    teams.connector.graph.post(CHANNEL, "1800000000009", "<p>hm</p>", createdDateTime=now)
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") is None


async def test_a_page_that_is_too_old_ends_the_search(teams: TeamsAdapter) -> None:
    teams.connector.graph.page_size = 2
    long_ago = graph_time(teams.clock.now() - LOOKED_BACK - timedelta(hours=1))
    for number in range(6):
        teams.connector.graph.post(CHANNEL, f"160000000000{number}", "<p>hm</p>", createdDateTime=long_ago)
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") is None
    assert len(asked_of_graph(teams)) == 1


async def test_every_message_carries_its_intent(teams: TeamsAdapter) -> None:
    posted = {
        name: await teams.messenger.post(CHANNEL_PLACE, message, name) for name, message in messages.SAMPLES.items()
    }
    assert {name: await teams.new_messenger().find(CHANNEL_PLACE, name) for name in posted} == posted
