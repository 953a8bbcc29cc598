"""Nobody can be named: two teams are asked in the incident's message, and called into its thread if they want to be."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.teams.activity import THREAD_SEPARATOR
from core.views import I_AM_UNSURE
from tests.fakes import adaptive_card, block_kit
from tests.fakes.slack_api import CHANNEL as SLACK_CHANNEL
from tests.fakes.teams_connector import CHANNEL as TEAMS_CHANNEL
from tests.fakes.teams_connector import TeamsConnector
from tests.scenario.home import Home
from tests.scenario.slack import WatchedSlack
from tests.scenario.teams_home import TeamsHome, is_added
from tests.scenario.unclear_owner import raise_unclear, without_monitoring

QUESTION = "Is this yours, Payments (on call: Ada Quist) or Catalogue (on call: Bo Lindgren)?"


@pytest.fixture
async def slack(furnished: Path, tmp_path: Path) -> AsyncIterator[Home]:
    without_monitoring(furnished, tmp_path)
    async with WatchedSlack() as slack:
        yield Home(tmp_path, slack)


@pytest.fixture
async def teams(furnished_for_teams: Path, tmp_path: Path) -> AsyncIterator[TeamsHome]:
    without_monitoring(furnished_for_teams, tmp_path)
    async with TeamsConnector() as teams:
        yield TeamsHome(tmp_path, teams)


async def test_in_slack_two_teams_are_asked_and_called_once(slack: Home) -> None:
    async with slack.life() as bot:
        await raise_unclear(await bot.address())
        await bot.finishes("details")
        await bot.stop()
    root, *thread = [message for message in slack.slack.messages if message["channel"] == SLACK_CHANNEL]
    said = "\n".join(block_kit.texts(root["blocks"]))
    assert f"*Owner*  not clear. {QUESTION}" in said
    called = [text for reply in thread for text in block_kit.texts(reply["blocks"]) if I_AM_UNSURE in text]
    assert called == [
        f"Is this yours, <!subteam^S0PAY> (on call: Ada Quist) or *Catalogue* (on call: Bo Lindgren)? {I_AM_UNSURE}"
    ]
    assert {reply["thread_ts"] for reply in thread} == {root["ts"]}


async def test_in_teams_two_teams_are_asked_and_called_once(teams: TeamsHome) -> None:
    async with teams.life() as bot:
        address = await bot.address()
        await is_added(teams, address)
        await raise_unclear(address)
        await bot.finishes("details")
        await bot.stop()
    (root,) = teams.said(TEAMS_CHANNEL)
    said = adaptive_card.texts(root.card)
    assert any(f"not clear. {QUESTION}" in line for line in said)
    thread = [sent.card for sent in teams.said(f"{TEAMS_CHANNEL}{THREAD_SEPARATOR}{root.id}")]
    (called,) = [card for card in thread if I_AM_UNSURE in str(card)]
    assert adaptive_card.texts(called) == ["<at>Payments</at>", f"{QUESTION} {I_AM_UNSURE}"]
    (entity,) = called["msteams"]["entities"]
    assert entity["mentioned"]["id"] == "pay@lantern.example"
