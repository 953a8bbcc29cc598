"""What `doctor` says of `sign_in`, the settings that it needs, and the identities that the chats tell."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.chat import CheckResult
from adapters.section import Host
from adapters.signing_in.guard import GroupSection, SignInSection
from bot.config.settings import Settings
from bot.config.workspace import load_workspace
from bot.wiring.application import check_sign_in, people_of
from core.model.errors import ConfigurationError
from tests.cases import every_case
from tests.fakes.clock import FakeClock
from tests.fakes.hosts import opened_host
from tests.fakes.openid_provider import OpenIdProvider, openid_provider

PUBLIC_URL = "https://bot.example"
ADDRESSES: dict[str, Any] = {
    "asha@example.com": {"ok": True, "user": {"id": "U0ASHA"}},
    "left@example.com": {"ok": True, "user": {"id": "U0LEFT", "deleted": True}},
}
YAML = """
channels:
  - {name: help, console: help}
sign_in:
  issuer: https://login.example
  client_id: page
  client_secret_env: PROVIDER_SECRET
  groups: {sre: {role: ROLE, channels: [CHANNEL]}}
"""


@pytest.fixture
async def provider() -> AsyncIterator[OpenIdProvider]:
    async with openid_provider(FakeClock()) as provider:
        yield provider


async def checked(section: SignInSection, public_url: str = PUBLIC_URL) -> CheckResult:
    async with opened_host() as host:
        settings = Settings.model_validate({"PLUMBLINE_PUBLIC_URL": public_url})
        return await check_sign_in(section, settings, host.session)


def section(provider: OpenIdProvider, **settings: Any) -> SignInSection:
    given: dict[str, Any] = {"issuer": provider.issuer, "client_id": "page", "client_secret_env": "PROVIDER_SECRET"}
    return SignInSection(groups={"sre": GroupSection()}, **(given | settings))


async def test_doctor_names_the_address_that_the_provider_must_know(
    provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVIDER_SECRET", "x")
    finding = await checked(section(provider))
    assert finding.well
    assert f"{PUBLIC_URL}/console/signed-in" in finding.result


async def test_doctor_says_what_is_wrong(provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    unset = await checked(section(provider))
    assert (unset.fatal, "PROVIDER_SECRET" in unset.remedy) == (True, True)
    monkeypatch.setenv("PROVIDER_SECRET", "x")
    for public_url in ("", "http://bot.example"):
        assert "PLUMBLINE_PUBLIC_URL" in (await checked(section(provider), public_url)).remedy
    assert "https://" in (await checked(section(provider, issuer="http://login.example"))).remedy
    assert "agents_audience" in (await checked(section(provider, agents_audience="page"))).remedy
    other = await checked(section(provider, issuer=f"{provider.issuer}/"))
    assert (other.fatal, "calls itself" in other.remedy) == (False, True)
    nobody = await checked(section(provider, issuer="http://127.0.0.1:9"))
    assert "cannot be reached" in nobody.remedy


def test_unknown_roles_and_channels_are_errors_that_name_their_line(tmp_path: Path) -> None:
    file = tmp_path / "plumbline.yaml"
    for role, channel, problem in (("admin", "help", "role"), ("viewer", "vault", "there is no channel vault")):
        file.write_text(YAML.replace("ROLE", role).replace("CHANNEL", channel))
        with pytest.raises(ConfigurationError, match=problem) as refused:
            load_workspace(file)
        assert "line 8" in str(refused.value)


@asynccontextmanager
async def chats(*, is_refused: bool = False) -> AsyncIterator[Host]:
    """Slack and Teams. If it refuses, Slack was not given the scope."""

    async def look_up(request: web.Request) -> web.Response:
        address = str((await request.post())["email"])
        return web.json_response({"ok": False} if is_refused else ADDRESSES.get(address, {"ok": False}))

    app = web.Application()
    app.router.add_post("/users.lookupByEmail", look_up)
    async with TestServer(app) as server:
        slack = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_SIGNING_SECRET": "s", "SLACK_API_URL": str(server.make_url("/"))}
        async with opened_host(**slack, TEAMS_APP_ID="app", TEAMS_APP_PASSWORD="p") as host:
            yield host


@every_case(
    ("address", "id_claim", "is_refused", "people"),
    [
        ("asha@example.com", "sub", False, ["slack:U0ASHA"]),
        ("asha@example.com", "oid", False, ["slack:U0ASHA", "teams:5c1f-asha"]),
        ("asha@example.com", "sub", True, []),
        ("left@example.com", "sub", False, []),
        ("nobody@example.com", "sub", False, []),
        ("", "oid", False, ["teams:5c1f-asha"]),
    ],
)
async def test_a_person_has_the_identities_that_the_chats_tell(
    address: str, id_claim: str, is_refused: bool, people: list[str]
) -> None:
    async with chats(is_refused=is_refused) as host:
        found = await people_of({"oid": "5c1f-asha", "name": "Asha"}, address, host, id_claim)
    assert [each.key for each in found] == people
    assert {each.name for each in found} <= {"Asha"}


def test_the_certificate_of_the_page_lies_beside_the_configuration(tmp_path: Path) -> None:
    line = "client_certificate: page.pem\n  client_id"
    text = YAML.replace("client_id", line).replace("ROLE", "viewer").replace("CHANNEL", "help")
    (tmp_path / "plumbline.yaml").write_text(text)
    sign_in = load_workspace(tmp_path / "plumbline.yaml").sign_in
    assert sign_in is not None
    assert sign_in.client_certificate == tmp_path / "page.pem"
