"""The real application in this process, on a free port. One at a time: the workflow engine is the process's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import aiohttp
from aiohttp import web
from dbos._dbos import _get_or_create_dbos_registry

from bot import server
from bot.routes import build_app
from bot.settings import Settings
from bot.wiring import ingest, open_core
from bot.workspace import load_workspace
from tests.fakes.slack_api import BOT_TOKEN, SIGNING_SECRET, FakeSlack
from tests.scenario.bot_client import BotClient
from tests.scenario.company import write_company

TOKEN = "one-token-for-every-door"


class RunningBot(BotClient):
    """The client, and the application itself."""

    def __init__(self, address: str, session: aiohttp.ClientSession, app: web.Application) -> None:
        super().__init__(address, session)
        self.app = app


@asynccontextmanager
async def running_bot(folder: Path) -> AsyncIterator[RunningBot]:
    """The bot with the small company, its corpus indexed, a Slack, and every door that can be locked locked."""
    async with FakeSlack() as slack, _running(_settings(folder, slack.url)) as bot:
        yield bot


def _settings(folder: Path, slack_url: str) -> Settings:
    return Settings.model_validate(
        {
            "PLUMBLINE_DATA_DIR": folder / "data",
            "PLUMBLINE_CONFIG": write_company(folder / "company"),
            "PLUMBLINE_PORT": 0,
            "PLUMBLINE_WEBHOOK_SECRET": TOKEN,
            "PLUMBLINE_CONSOLE_TOKEN": TOKEN,
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_SIGNING_SECRET": SIGNING_SECRET,
            "SLACK_API_URL": slack_url,
        }
    )


@asynccontextmanager
async def _running(settings: Settings) -> AsyncIterator[RunningBot]:
    apps: list[web.Application] = []

    def remembered(**parts: Any) -> web.Application:
        apps.append(build_app(**parts))
        return apps[0]

    async with open_core(settings, load_workspace(settings.config)) as core:
        await ingest(core)
        try:
            with patch.object(server, "build_app", remembered):
                async with (
                    server.running(core) as address,
                    aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as session,
                ):
                    yield RunningBot(address, session, apps[0])
        finally:
            # The engine holds one instance per process, and has no public way to forget it.
            _get_or_create_dbos_registry().instance_info_map.clear()
