"""The home of a bot in Teams that is killed, one life after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.fakes.door_secrets import LOCKED
from tests.fakes.teams_connector import (
    APP_ID,
    APP_PASSWORD,
    BOT,
    CHANNEL,
    TEAM,
    TENANT,
    Sent,
    TeamsConnector,
)
from tests.folders import copy_folder
from tests.scenario.home import furnish
from tests.scenario.mortal_bot import TIMEOUT, Death, MortalBot


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
    async def life(self, death: Death | None = None, more: Mapping[str, Any] | None = None) -> AsyncIterator[MortalBot]:
        """`more` are constants that are replaced."""
        constants = {
            **(more or {}),
            "adapters.teams.connector.PUBLIC_CLOUD": self.teams.cloud,
            **dict.fromkeys(
                (
                    "adapters.teams.connector.DEADLINE",
                    "adapters.teams.history.SEARCH_DEADLINE",
                    "adapters.teams.history.THREAD_DEADLINE",
                ),
                TIMEOUT,
            ),
        }
        bot = MortalBot(self._environment, self.log, death, constants)
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


@pytest.fixture(scope="session")
def furnished_for_teams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A company whose incidents go to Teams, and whose corpus is indexed: to be copied."""
    return furnish(tmp_path_factory.mktemp("furnished"), incidents_on_teams=CHANNEL)


@pytest.fixture
async def teams_home(furnished_for_teams: Path, tmp_path: Path) -> AsyncIterator[TeamsHome]:
    """A copy of that company, and a Teams."""
    copy_folder(furnished_for_teams, tmp_path)
    async with TeamsConnector() as teams:
        yield TeamsHome(tmp_path, teams)


async def is_added(home: TeamsHome, address: str) -> None:
    """The app is added to a team, in whose channel of incidents nobody ever spoke with it."""
    general = {"id": TEAM, "conversationType": "channel", "tenantId": TENANT}
    await home.deliver(address, type="conversationUpdate", membersAdded=[{"id": BOT}], conversation=general)
