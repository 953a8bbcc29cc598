"""`plumbline doctor teams`, against a fake of Microsoft's side."""

from __future__ import annotations

import json
import zipfile
from collections.abc import AsyncIterator
from io import StringIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from rich.console import Console

from adapters.chat import CheckResult
from adapters.clock import SystemClock
from adapters.http import ONCE
from adapters.section import Host
from adapters.store.conversations import SqlTeamsConversations
from adapters.store.database import migrate, open_database
from adapters.teams import history
from adapters.teams.app_package import manifest_of
from adapters.teams.connector import ConversationReference, remember
from adapters.teams.doctor import check_teams
from adapters.teams.settings import TeamsSettings
from bot.commands.doctor import run_doctor
from bot.config.settings import Settings
from core.model.conversation import Channel, Platform
from tests.fakes.certificates import certificate
from tests.fakes.teams_connector import APP_ID, APP_PASSWORD, CHANNEL, TEAM, TENANT, TeamsConnector


@pytest.fixture
async def connector() -> AsyncIterator[TeamsConnector]:
    async with TeamsConnector() as connector:
        yield connector


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLUMBLINE_DATA_DIR", str(tmp_path))
    return tmp_path


async def is_heard(connector: TeamsConnector, folder: Path) -> None:
    """Somebody added the app to the team, while the bot ran."""
    engine = open_database(f"sqlite:///{folder / 'plumbline.sqlite'}")
    await migrate(engine)
    reference = ConversationReference(connector.service_url, TENANT, threaded=True, team_id=TEAM)
    await remember(SqlTeamsConversations(engine), TEAM, reference)
    await engine.dispose()


async def findings(
    connector: TeamsConnector, package: Path = Path("none.zip"), **variables: Any
) -> dict[str, CheckResult]:
    usual = {"TEAMS_APP_ID": APP_ID, "TEAMS_APP_PASSWORD": APP_PASSWORD, "TEAMS_TENANT_ID": TENANT}
    settings = Settings.model_validate({name: value for name, value in (usual | variables).items() if value})
    channels = (Channel("incidents", {Platform.TEAMS: CHANNEL}), Channel("here", {}))
    async with aiohttp.ClientSession() as session:
        checks = check_teams(
            settings.chat(TeamsSettings),
            Host(settings, session, SystemClock()),
            channels,
            cloud=connector.cloud,
            service_url=connector.service_url,
            package=package,
        )
        return {finding.what: finding async for finding in checks}


@pytest.mark.parametrize(("days", "is_well"), [(60, True), (20, False), (-1, False)])
async def test_a_certificate_that_expires_is_told_thirty_days_ahead(
    connector: TeamsConnector, tmp_path: Path, days: int, *, is_well: bool
) -> None:
    made = certificate(tmp_path / "app.pem", days)
    file = str(tmp_path / "app.pem")
    found = (await findings(connector, TEAMS_APP_PASSWORD="", TEAMS_APP_CERTIFICATE=file))["Teams credentials"]
    assert found.result == f"expire on {made.not_valid_after_utc:%Y-%m-%d}"
    assert (found.well, found.fatal) == (is_well, False)


async def test_a_secret_does_not_say_when_it_expires(connector: TeamsConnector) -> None:
    assert (await findings(connector))["Teams credentials"].result == "do not say when they expire"


async def test_what_is_well_says_so(connector: TeamsConnector, data_folder: Path) -> None:
    connector.graph.consented = True
    await is_heard(connector, data_folder)
    found = await findings(connector)
    assert {what for what, finding in found.items() if not finding.well} == {"Teams messages"}
    assert "is open to the app" in found["Teams channel incidents"].result
    assert found["Teams signing keys"].result == "1 are published"


async def test_a_consent_that_is_missing_is_named_and_stops_nobody(
    connector: TeamsConnector, data_folder: Path
) -> None:
    await is_heard(connector, data_folder)
    found = (await findings(connector))["Teams history of incidents"]
    assert (found.well, found.fatal) == (False, False)
    assert "ChannelMessage.Read.Group" in found.remedy
    assert "may appear twice" in found.remedy


async def test_a_channel_without_an_address_is_told_because_its_incidents_wait(connector: TeamsConnector) -> None:
    found = (await findings(connector))["Teams address of incidents"]
    assert found.fatal
    assert "mention the bot there once" in found.remedy


@pytest.mark.parametrize("status", [404, 503])
async def test_a_graph_that_does_not_show_a_channel_stops_nobody(
    connector: TeamsConnector, data_folder: Path, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "RETRIES", ONCE)
    await is_heard(connector, data_folder)
    connector.graph.refusals.refuse(status)
    found = (await findings(connector))["Teams history of incidents"]
    assert (found.well, found.fatal) == (False, False)


async def test_without_a_database_the_history_is_not_tried(connector: TeamsConnector, data_folder: Path) -> None:
    found = await findings(connector, PLUMBLINE_DATA_DIR=str(data_folder / "missing"))
    assert not found["Teams history"].fatal
    assert found["Teams token"].well


async def test_an_address_that_is_no_database_is_not_told_as_trouble_with_the_token(connector: TeamsConnector) -> None:
    found = await findings(connector, PLUMBLINE_DATABASE_URL="mysql://127.0.0.1/plumbline")
    assert "PLUMBLINE_DATABASE_URL" in found["Teams history"].remedy
    assert found["Teams token"].well


async def test_without_an_app_there_is_the_playground() -> None:
    out = StringIO()
    assert await run_doctor(Settings.model_validate({}), Console(file=out, width=200), "teams") == 0
    assert "Teams: anonymous, for the playground on this machine" in out.getvalue()


async def test_a_missing_password_is_asked_for(connector: TeamsConnector) -> None:
    assert "TEAMS_APP_PASSWORD" in (await findings(connector, TEAMS_APP_PASSWORD=""))["Teams"].remedy


async def test_a_wrong_password_is_refused_and_not_shown(connector: TeamsConnector) -> None:
    found = await findings(connector, TEAMS_APP_PASSWORD="wrong-one")
    assert found["Teams token"].result == "is refused"
    assert "wrong-one" not in str(found)


@pytest.mark.parametrize(
    ("tenants", "is_told"), [("", True), (f"{TENANT},9b1d3c55-0f6f-4b2a-8f6c-2d0a5f1f7e21", True), (TENANT, False)]
)
async def test_a_refused_token_without_one_tenant_says_what_a_single_tenant_bot_needs(
    connector: TeamsConnector, tenants: str, is_told: bool
) -> None:
    connector.token_answer = (400, {"error": "unauthorized_client"})
    found = (await findings(connector, TEAMS_TENANT_ID=tenants))["Teams token"]
    assert found.result == "is refused"
    assert ("A single-tenant bot needs its own tenant alone" in found.remedy) == is_told


@pytest.mark.parametrize("variables", [{"TEAMS_APP_ID": "my-bot"}, {"TEAMS_TENANT_ID": f"{TENANT},contoso"}])
async def test_ids_that_are_none_are_named(connector: TeamsConnector, variables: dict[str, Any]) -> None:
    assert next(iter(variables)) in (await findings(connector, **variables))["Teams ids"].remedy


async def test_hearing_everybody_is_said(connector: TeamsConnector) -> None:
    found = (await findings(connector, TEAMS_TENANT_ID=""))["Teams tenants"]
    assert not found.well
    assert not found.fatal


async def test_signing_keys_that_cannot_be_fetched_are_a_fault(connector: TeamsConnector) -> None:
    connector.keys_down = True
    assert not (await findings(connector))["Teams signing keys"].well


async def test_microsoft_that_issues_no_token_is_told_from_a_refusal(connector: TeamsConnector) -> None:
    connector.token_answer = (503, {})
    assert (await findings(connector))["Teams token"].result == "is not issued"


@pytest.mark.parametrize(("status", "well"), [(401, True), (404, False), (200, False)])
async def test_the_way_in_has_to_ask_for_a_token(connector: TeamsConnector, status: int, well: bool) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status)

    app = web.Application()
    app.router.add_post("/api/messages", answer)
    async with TestServer(app) as server:
        found = await findings(connector, PLUMBLINE_PUBLIC_URL=str(server.make_url("/")))
    assert found["Teams messages"].well is well


async def test_a_package_that_says_something_else_is_named(connector: TeamsConnector, tmp_path: Path) -> None:
    package = tmp_path / "plumbline-teams.zip"
    manifest = manifest_of(APP_ID, "plumbline.example.com")
    for change, well in (({}, True), ({"composeExtensions": []}, False), ({"bots": "none"}, False)):
        with zipfile.ZipFile(package, "w") as opened:
            opened.writestr("manifest.json", json.dumps(manifest | change))
        assert (await findings(connector, package))["Teams app plumbline-teams.zip"].well is well
    package.write_bytes(b"no zip")
    assert "cannot be read" in (await findings(connector, package))["Teams app plumbline-teams.zip"].result


async def test_the_sdk_whose_support_ended_is_named(connector: TeamsConnector) -> None:
    assert "Teams SDK" not in await findings(connector)
    found = (await findings(connector, TEAMS_SDK="botbuilder"))["Teams SDK"]
    assert "31 December 2025" in found.result
    assert not found.fatal
