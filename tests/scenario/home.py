"""What outlives a bot that is killed: its company, its data and its Slack."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bot.config.settings import Settings
from bot.config.workspace import load_workspace
from bot.wiring.application import ingest, open_core
from tests.fakes.door_secrets import KNOWN, LOCKED
from tests.fakes.slack_api import BOT_TOKEN, CHANNEL, SIGNING_SECRET
from tests.scenario.company import write_company
from tests.scenario.mortal_bot import Death, MortalBot
from tests.scenario.slack import WatchedSlack
from tests.scenario.webhooks import alert, delivery

NO_STORM = {  # every incident has a message of its own, however soon it follows another of its service
    "core.incidents.folding.STORM": timedelta(0),
    "handlers.incidents.arrange_incident.STORM": timedelta(0),
}


class Home:
    """The furnished folder of a bot, one life after the other. `database_url` is empty for SQLite in the folder."""

    def __init__(self, folder: Path, slack: WatchedSlack, database_url: str = "", **environment: str) -> None:
        self.slack = slack
        self.data = folder / "data"
        self.log = folder / "log"
        self._environment = {
            "PLUMBLINE_CONFIG": str(folder / "company" / "plumbline.yaml"),
            "PLUMBLINE_DATA_DIR": str(self.data),
            "PLUMBLINE_DATABASE_URL": database_url,
            "PLUMBLINE_PORT": "0",
            **LOCKED,
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_SIGNING_SECRET": SIGNING_SECRET,
            "SLACK_API_URL": slack.url,
            "SLACK_POST_INTERVAL": "0",
            **environment,
        }

    @asynccontextmanager
    async def life(
        self, death: Death | None = None, constants: Mapping[str, Any] | None = None
    ) -> AsyncIterator[MortalBot]:
        bot = MortalBot(self._environment, self.log, death, constants)
        try:
            yield bot
        finally:
            bot.close()


@pytest.fixture(scope="session")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A company whose incidents go to Slack, and whose corpus is indexed: to be copied."""
    return furnish(tmp_path_factory.mktemp("furnished"), incidents_on_slack=CHANNEL)


def furnish(folder: Path, **incidents_on: str) -> Path:
    """Write a company into this folder and index its corpus. `incidents_on`: as `write_company` takes it."""
    config = write_company(folder / "company", **incidents_on)
    asyncio.run(_index(Settings.model_validate({"PLUMBLINE_CONFIG": config, "PLUMBLINE_DATA_DIR": folder / "data"})))
    return folder


async def _index(settings: Settings) -> None:
    async with open_core(settings, load_workspace(settings.config)) as core:
        await ingest(core)


async def alarm(address: str, group: str = "group") -> tuple[int, str]:
    """Send an alert; the status, and what was said to it."""
    async with (
        aiohttp.ClientSession(headers=KNOWN) as session,
        session.post(f"{address}webhooks/alertmanager", json=delivery(group, alert(group))) as response,
    ):
        return response.status, await response.text()
