"""What `plumbline doctor slack` says of an app, and how to mend it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from rich.console import Console

from adapters.slack.doctor import SCOPES
from bot.commands.doctor import run_doctor
from bot.config.settings import Settings
from tests.fakes import slack_api
from tests.fakes.door_secrets import LOCKED
from tests.fakes.slack_bot import slack_bot

MANIFEST = Path(__file__).parents[3] / "deploy/slack/manifest.yaml"
CONFIG = """
channels:
  - {name: incidents, slack: C0INC}
  - {name: payments, slack: C0PAY}
  - {name: vault, slack: C0VAULT, private: true}
"""


class App:
    """Slack as the doctor sees it: whatever it answers can be changed."""

    def __init__(self) -> None:
        self.scopes = set(SCOPES)
        self.answers: dict[str, dict[str, Any]] = {
            "auth.test": {"ok": True, "user": "plumbline", "team": "Marigold", "bot_id": "B1"},
            "apps.connections.open": {"ok": True, "url": "wss://none"},
            "bots.info": {"ok": True, "bot": {"app_id": "A1"}},
            "apps.manifest.export": {"ok": True, "manifest": yaml.safe_load(MANIFEST.read_text())},
        }
        self.channels: dict[str, dict[str, Any]] = {
            name: {"is_member": True, "is_private": name == "C0VAULT"} for name in ("C0INC", "C0PAY", "C0VAULT")
        }
        app = web.Application()
        app.router.add_route("*", "/api/{method}", self._call)
        self.server = TestServer(app)

    def join_organisation(self, *workspaces: str) -> None:
        self.answers["auth.test"]["is_enterprise_install"] = True
        self.answers["auth.teams.list"] = {"ok": True, "teams": [{"id": each} for each in workspaces]}

    async def _call(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        if method == "conversations.info":
            channel = self.channels.get(str((await request.post())["channel"]))
            return web.json_response({"ok": True, "channel": channel} if channel else {"ok": False})
        return web.json_response(self.answers[method], headers={"X-OAuth-Scopes": ",".join(self.scopes)})


@pytest.fixture
async def app() -> AsyncIterator[App]:
    started = App()
    await started.server.start_server()
    yield started
    await started.server.close()


Doctor = Callable[..., Any]


@pytest.fixture
def doctor(app: App, tmp_path: Path) -> Doctor:
    """The doctor's exit code and words, with these settings."""
    (tmp_path / "plumbline.yaml").write_text(CONFIG)

    async def ask(**settings: Any) -> tuple[int, str]:
        usual = {
            **LOCKED,
            "SLACK_BOT_TOKEN": "xoxb-1",
            "SLACK_APP_TOKEN": "xapp-1",
            "SLACK_API_URL": str(app.server.make_url("/api/")),
            "config": tmp_path / "plumbline.yaml",
            "data_dir": tmp_path,
        }
        out = StringIO()
        values = {name: value for name, value in (usual | settings).items() if value is not None}
        code = await run_doctor(Settings.model_validate(values), Console(file=out, width=300), "slack")
        return code, out.getvalue()

    return ask


async def test_an_app_in_order_has_nothing_to_mend(doctor: Doctor) -> None:
    code, said = await doctor(SLACK_CONFIG_TOKEN="xoxe-1")
    assert code == 0
    assert "✗" not in said
    assert "!" not in said
    for told in ("plumbline in Marigold", "those of the manifest", "Socket Mode", "has everything that the bot needs"):
        assert told in said


async def test_a_token_that_is_rotated_is_named(doctor: Doctor) -> None:
    code, said = await doctor(SLACK_BOT_TOKEN="xoxe.xoxb-1")
    assert (code, "expires after twelve hours" in said) == (1, True)


async def test_without_a_token_slack_is_off(doctor: Doctor) -> None:
    code, said = await doctor(SLACK_BOT_TOKEN=None, SLACK_APP_TOKEN=None)
    assert (code, "off" in said) == (0, True)


@pytest.mark.parametrize(
    ("change", "said", "code"),
    [
        (lambda app: app.answers["auth.test"].update(ok=False, error="invalid_auth"), "is refused: invalid_auth", 1),
        (lambda app: app.answers["auth.test"].update(ok=False, error="token_expired"), "without token rotation", 1),
        (lambda app: app.join_organisation("T1", "T2"), "the app in 2 workspaces; every channel counts as private", 0),
        (lambda app: app.join_organisation(), "the app in 0 workspaces", 1),
        (lambda app: app.scopes.discard("reactions:read"), "reactions:read (reactions to its answers as feedback)", 1),
        (lambda app: app.scopes.add("channels:join"), "does not need: channels:join", 0),
        (lambda app: app.scopes.clear(), "are not known", 0),
        (lambda app: app.answers["apps.connections.open"].update(ok=False, error="x"), "Socket Mode is refused: x", 1),
        (lambda app: app.channels.pop("C0INC"), "channel incidents: does not have the bot in it", 0),
        (lambda app: app.channels["C0INC"].update(is_member=False), "/invite", 0),
        (lambda app: app.channels["C0PAY"].update(is_private=True), "channel payments: is private in Slack", 1),
        (lambda app: app.answers["apps.manifest.export"].update(ok=False, error="token_expired"), "12 hours", 0),
        (
            lambda app: app.answers["apps.manifest.export"]["manifest"]["features"].pop("shortcuts"),
            "shortcut ask_about_message",
            1,
        ),
    ],
)
async def test_what_is_wrong_is_said_with_what_mends_it(
    app: App, doctor: Doctor, change: Callable[[App], Any], said: str, code: int
) -> None:
    change(app)
    given, words = await doctor(SLACK_CONFIG_TOKEN="xoxe-1")
    assert said in words
    assert given == code


async def test_a_slack_that_cannot_be_reached_is_said(doctor: Doctor) -> None:
    code, said = await doctor(SLACK_API_URL="http://127.0.0.1:9/api/")
    assert code == 1
    assert "Check the network and SLACK_API_URL" in said


async def test_the_address_is_tried_as_slack_tries_it(doctor: Doctor) -> None:
    async with slack_bot() as bot:
        bot.clock.advance((datetime.now(UTC) - bot.clock.now()).total_seconds())
        address = str(bot.http.make_url("/")).rstrip("/")
        over_http = {"SLACK_APP_TOKEN": None, "public_url": address}
        code, said = await doctor(SLACK_SIGNING_SECRET=slack_api.SIGNING_SECRET, **over_http)
        assert (code, f"reach {address}/slack/events" in said) == (0, True)
        code, said = await doctor(SLACK_SIGNING_SECRET="another", **over_http)
        assert (code, "refuses the signature" in said) == (1, True)


@pytest.mark.parametrize(
    ("settings", "said", "code"),
    [
        ({"SLACK_SIGNING_SECRET": "s"}, "set PLUMBLINE_PUBLIC_URL", 0),
        ({"SLACK_SIGNING_SECRET": "s", "public_url": "http://127.0.0.1:9"}, "does not answer", 1),
        ({}, "cannot be received", 1),
    ],
)
async def test_a_way_in_that_is_not_open_is_said(
    doctor: Doctor, settings: dict[str, str], said: str, code: int
) -> None:
    given, words = await doctor(SLACK_APP_TOKEN=None, **settings)
    assert said in words
    assert given == code


async def test_something_else_at_the_address_is_said(app: App, doctor: Doctor) -> None:
    elsewhere = str(app.server.make_url("/")).rstrip("/")
    _, said = await doctor(SLACK_APP_TOKEN=None, SLACK_SIGNING_SECRET="s", public_url=elsewhere)
    assert "answers 404" in said
    assert json.dumps(said).count("xoxb-1") == 0, "no token is printed"
