"""In Teams too, a bot that is killed between a post and its record says nothing twice, where Graph may be asked."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from adapters.teams.activity import THREAD_SEPARATOR
from tests.fakes.adaptive_card import texts
from tests.fakes.door_secrets import LOCKED
from tests.fakes.graph_server import graph_time
from tests.fakes.teams_connector import (
    APP_ID,
    APP_PASSWORD,
    BOT,
    CHANNEL,
    MENTION,
    TEAM,
    TENANT,
    Sent,
    TeamsConnector,
)
from tests.scenario.home import alarm, furnish
from tests.scenario.mortal_bot import Death, Moment, MortalBot

ROOT = "1700000000001"
ALERT, DETAILS = (Death(Moment.SAID, step) for step in (1, 8))  # the steps of an incident's workflow that post


class TeamsHome:
    """The furnished folder of a bot that lives in Teams, one life after the other."""

    def __init__(self, folder: Path, teams: TeamsConnector, **environment: str) -> None:
        self.teams = teams
        self.log = folder / "log"
        self._environment = {
            "PLUMBLINE_CONFIG": str(folder / "company" / "plumbline.yaml"),
            "PLUMBLINE_DATA_DIR": str(folder / "data"),
            "PLUMBLINE_PORT": "0",
            **LOCKED,
            "TEAMS_APP_ID": APP_ID,
            "TEAMS_APP_PASSWORD": APP_PASSWORD,
            "TEAMS_TENANT_ID": TENANT,
            **environment,
        }

    @asynccontextmanager
    async def life(self, death: Death | None = None) -> AsyncIterator[MortalBot]:
        clouds = {"adapters.teams.cloud.PUBLIC_CLOUD": self.teams.cloud}
        bot = MortalBot(self._environment, self.log, death, clouds)
        try:
            yield bot
        finally:
            bot.close()

    async def deliver(self, address: str, **fields: Any) -> None:
        headers = {"Authorization": f"Bearer {self.teams.token()}"}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(f"{address}api/messages", json=self.teams.activity(**fields)) as response,
        ):
            assert response.status == 200, await response.text()

    def said(self, conversation: str) -> list[Sent]:
        return [message for message in self.teams.messages.values() if message.conversation == conversation]


@pytest.fixture(scope="module")
def furnished_for_teams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return furnish(tmp_path_factory.mktemp("furnished"), incidents_on_teams=CHANNEL)


@pytest.fixture
async def home(furnished_for_teams: Path, tmp_path: Path) -> AsyncIterator[TeamsHome]:
    shutil.copytree(furnished_for_teams, tmp_path, dirs_exist_ok=True)
    async with TeamsConnector() as teams:
        yield TeamsHome(tmp_path, teams)


async def is_added(home: TeamsHome, address: str) -> None:
    """The app is added to a team, in whose channel of incidents nobody ever spoke with it."""
    general = {"id": TEAM, "conversationType": "channel", "tenantId": TENANT}
    await home.deliver(address, type="conversationUpdate", membersAdded=[{"id": BOT}], conversation=general)


@pytest.mark.parametrize(("consented", "deaths"), [(True, [ALERT, DETAILS]), (False, [ALERT])])
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
