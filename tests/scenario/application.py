"""The real application in this process, on a free port. One at a time: the workflow engine is the process's own."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import aiohttp
from aiohttp import web
from dbos._dbos import _get_or_create_dbos_registry

from adapters.console.messages import ConsoleMessenger
from bot import server
from bot.config.settings import Settings
from bot.config.workspace import load_workspace
from bot.web.routes import build_app
from bot.wiring.application import ingest, open_core
from core.model.conversation import MessageReference, Place
from core.model.messages import Message
from core.ports import Store
from tests.fakes.clock import no_schedules
from tests.fakes.publisher_servers import FakeGitHub
from tests.fakes.slack_api import BOT_TOKEN, SIGNING_SECRET
from tests.fakes.tool_servers import TOKEN as TOOL_TOKEN
from tests.fakes.tool_servers import reached
from tests.scenario.bot_client import BotClient
from tests.scenario.company import write_company
from tests.scenario.slack import WatchedSlack

TOKEN = "one-token-for-every-door"
FILING = """\
filing:
  - {{kind: github_issue, name: Till board, url: "{url}", repository: acme/ops, token_env: TRACKER_TOKEN, channels: [pages, incidents]}}
  - {{kind: github_file, name: Wiki, url: "{url}", repository: acme/ops, token_env: TRACKER_TOKEN, channels: [incidents]}}
  - {{kind: github_issue, name: Board of Bo, url: "{url}", repository: acme/ops, token_env: TRACKER_TOKEN, channels: [incidents], people: ["slack:U0BO"]}}
"""


class RunningBot(BotClient):
    """The client, the application itself, and the Slack that it speaks in."""

    def __init__(
        self,
        address: str,
        session: aiohttp.ClientSession,
        app: web.Application,
        slack: WatchedSlack,
        said: list[Message],
        store: Store,
        company: Path,
        tracker: FakeGitHub,
    ) -> None:
        super().__init__(address, session)
        self.app = app
        self.slack = slack
        self.store = store
        self.company = company  # the folder of plumbline.yaml
        self.tracker = tracker  # in which people may file
        self.said = said  # on the local page, posted or edited, in order


@asynccontextmanager
async def running_bot(folder: Path) -> AsyncIterator[RunningBot]:
    """The bot with the small company, its corpus indexed, a Slack, and every door that can be locked locked."""
    tracker = FakeGitHub()
    async with WatchedSlack() as slack, reached(tracker) as github:
        settings = _settings(folder, slack.url)
        assert settings.config is not None
        settings.config.write_text(settings.config.read_text() + FILING.format(url=github.url.rstrip("/")))
        with patch.dict(os.environ, {"TRACKER_TOKEN": TOOL_TOKEN.removeprefix("Bearer ")}):
            async with _running(settings, slack, tracker) as bot:
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
            "SLACK_POST_INTERVAL": 0,  # what is slow for people is slow for tests
        }
    )


@asynccontextmanager
async def _running(settings: Settings, slack: WatchedSlack, tracker: FakeGitHub) -> AsyncIterator[RunningBot]:
    apps: list[web.Application] = []
    said: list[Message] = []

    def remembered(**parts: Any) -> web.Application:
        apps.append(build_app(**parts))
        return apps[0]

    class OverheardMessenger(ConsoleMessenger):
        async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
            said.append(message)
            return await super().post(place, message, intent)

        async def edit(self, reference: MessageReference, message: Message) -> None:
            said.append(message)
            await super().edit(reference, message)

    assert settings.config is not None
    company = settings.config.parent
    async with open_core(settings, load_workspace(settings.config)) as core:
        await ingest(core)
        try:
            with (
                patch.object(server, "build_app", remembered),
                patch.object(server, "ConsoleMessenger", OverheardMessenger),
                patch.object(server, "keep_schedules", no_schedules),
            ):
                async with (
                    server.running(core) as address,
                    aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as session,
                ):
                    yield RunningBot(address, session, apps[0], slack, said, core.store, company, tracker)
        finally:
            # The engine holds one instance per process, and has no public way to forget it.
            _get_or_create_dbos_registry().instance_info_map.clear()
