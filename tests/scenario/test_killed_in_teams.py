"""In Teams too, a bot that is killed between a post and its record says nothing twice, where Graph may be asked."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.teams.activity import THREAD_SEPARATOR
from tests.fakes.adaptive_card import texts
from tests.fakes.graph_server import graph_time
from tests.fakes.teams_connector import (
    CHANNEL,
    MENTION,
    TeamsConnector,
)
from tests.scenario.home import alarm, furnish
from tests.scenario.mortal_bot import INCIDENT_STEPS, Death, Moment
from tests.scenario.teams_home import TeamsHome, is_added

ROOT = "1700000000001"
ALERT, DETAILS = (
    Death(Moment.SAID, step) for step in (1, len(INCIDENT_STEPS))
)  # the steps of an incident's workflow that post


@pytest.fixture(scope="module")
def furnished_for_teams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return furnish(tmp_path_factory.mktemp("furnished"), incidents_on_teams=CHANNEL)


@pytest.fixture
async def home(furnished_for_teams: Path, tmp_path: Path) -> AsyncIterator[TeamsHome]:
    shutil.copytree(furnished_for_teams, tmp_path, dirs_exist_ok=True)
    async with TeamsConnector() as teams:
        yield TeamsHome(tmp_path, teams)


@pytest.mark.external  # a life or a death takes about a second
@pytest.mark.parametrize(("consented", "deaths"), [(True, [ALERT]), (True, [DETAILS]), (False, [ALERT])])
async def test_an_incident_is_told_once_where_somebody_consented_and_else_once_more(
    home: TeamsHome, consented: bool, deaths: list[Death]
) -> None:
    home.teams.graph.consented = consented
    async with home.life(Death(Moment.ASLEEP)) as bot:
        address = await bot.address()
        await is_added(home, address)
        assert (await alarm(address))[0] == 202
        bot.kill()
    for death in deaths:
        async with home.life(death) as bot:
            await bot.dies()
    async with home.life() as bot:
        await bot.finishes("details")
        await bot.stop()
    *before, root = home.said(CHANNEL)
    assert len(before) == (0 if consented else 1)
    assert "Payments" in "\n".join(texts(root.card))
    assert len(home.said(f"{CHANNEL}{THREAD_SEPARATOR}{root.id}")) == 1
    assert ("ChannelMessage.Read.Group" in home.log.read_text()) is not consented


@pytest.mark.external  # lives and deaths take about a second
async def test_a_question_in_the_middle_of_a_thread_is_understood_and_answered_once(home: TeamsHome) -> None:
    home.teams.graph.consented = True
    at = graph_time(datetime.fromtimestamp(int(ROOT) / 1000, UTC))
    home.teams.graph.post(CHANNEL, ROOT, "<p>How do I roll back a canary?</p>", createdDateTime=at)
    async with home.life(Death(Moment.ASLEEP)) as bot:
        await home.deliver(await bot.address(), text=f"{MENTION} and how long does that take?")
        bot.kill()
    async with home.life(Death(Moment.SAID, 1)) as bot:
        await bot.dies()
    async with home.life() as bot:
        await bot.finishes("answer")
        await bot.stop()
    (answer,) = home.said(f"{CHANNEL}{THREAD_SEPARATOR}{ROOT}")
    assert "90 seconds" in "\n".join(texts(answer.card))
