"""A team asks for the alerts of its channel in Teams: the offer, its button, an alert, and the end that its sender replies."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from adapters.teams.activity import THREAD_SEPARATOR
from tests.fakes.adaptive_card import texts
from tests.fakes.graph_server import graph_time
from tests.fakes.teams_connector import CHANNEL, MENTION
from tests.scenario.teams import button
from tests.scenario.teams_home import TeamsHome, is_added

OFTEN = {"adapters.posted.teams.PAUSE": 0.05}  # seconds between two looks at the channel
ASKED, LAMP, FAN = "1700000000001", "1700000000101", "1700000000102"


def posts(teams_home: TeamsHome, message: str, title: str, reply_to: str | None = None) -> None:
    """A workflow posts a card of a monitoring system."""
    facts = [{"title": "Severity:", "value": "high"}, {"title": "Service:", "value": "payments-api"}]
    body = [{"type": "TextBlock", "text": title}, {"type": "FactSet", "facts": facts}]
    card = json.dumps({"type": "AdaptiveCard", "body": body})
    sender: dict[str, Any] = {"from": {"application": {"id": "bell", "displayName": "Bell"}, "user": None}}
    teams_home.teams.graph.post(
        CHANNEL,
        message,
        "",
        reply_to=reply_to,
        createdDateTime=graph_time(datetime.now(UTC)),
        attachments=[{"id": "1", "contentType": "application/vnd.microsoft.card.adaptive", "content": card}],
        **sender,
    )


def said(teams_home: TeamsHome, thread: str) -> str:
    return "\n".join("\n".join(texts(each.card)) for each in teams_home.said(f"{CHANNEL}{THREAD_SEPARATOR}{thread}"))


async def presses(teams_home: TeamsHome, address: str, pressed: dict[str, Any]) -> None:
    value = {"action": {"type": "Action.Execute", "verb": "adopt", "data": pressed["data"]}, "trigger": "manual"}
    await teams_home.deliver(address, type="invoke", name="adaptiveCard/action", text=None, value=value, id="f:1")


@pytest.mark.external  # seconds
async def test_an_alert_is_answered_once_a_person_adopted_the_channel_and_a_reply_of_its_sender_ends_it(
    teams_home: TeamsHome,
) -> None:
    teams_home.teams.graph.consented = True
    posts(teams_home, LAMP, "[FIRING:1] Lamp is out")
    async with teams_home.life(more=OFTEN) as bot:
        address = await bot.address()
        await is_added(teams_home, address)
        await bot.finishes("answer")  # the greeting
        bot.steps.clear()
        await teams_home.deliver(address, text=f"{MENTION} adopt")
        await bot.finishes("answer")
        assert "Alerts: Bell 1" in said(teams_home, ASKED)
        offer = next(
            each for each in teams_home.said(f"{CHANNEL}{THREAD_SEPARATOR}{ASKED}") if each.card.get("actions")
        )
        await presses(teams_home, address, button(offer.card, "Adopt"))
        await bot.finishes("feedback")
        posts(teams_home, FAN, "[FIRING:1] Fan is loud")
        await bot.finishes("details")
        assert "Fan is loud" in said(teams_home, FAN)
        posts(teams_home, "1700000000103", "Resolved", reply_to=FAN)
        while "Resolved" not in said(teams_home, FAN):  # noqa: ASYNC110 -- nothing tells it
            await asyncio.sleep(0.05)
        await bot.stop()
    assert teams_home.said(CHANNEL) == [], "nothing outside threads"
