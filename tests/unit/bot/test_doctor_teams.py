"""`plumbline doctor` on schedules, catalogues and places to file in: what fails is named, and stops nobody."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from adapters.catalogues.backstage import BackstageSection
from adapters.catalogues.codeowners import CodeownersSection
from adapters.readers.sections import OnCallSystem
from bot.commands.doctor import check_catalogue, check_filing, check_schedule
from bot.config.section import ON_CALL, PUBLISHERS
from bot.config.workspace import load_workspace
from tests.fakes.hosts import opened_host
from tests.fakes.on_call_servers import FakeOpsgenie, FakePagerDuty
from tests.fakes.publisher_servers import FakeGitHub


def on_call(**keys: Any) -> OnCallSystem:
    return ON_CALL.validated(keys)


async def test_a_schedule_that_lets_us_in_is_well_and_one_that_does_not_is_no_fatal_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with TestServer(FakePagerDuty({}).app()) as server, opened_host() as host:
        section = on_call(kind="pagerduty", url=str(server.make_url("")).rstrip("/"), token_env="PD_TOKEN")
        monkeypatch.setattr(os, "environ", {"PD_TOKEN": "wrong"})
        refused = await check_schedule(section, host)
        monkeypatch.setattr(os, "environ", {})
        unset = await check_schedule(section, host)
    assert (refused.well, refused.fatal) == (False, False)
    assert "refuses the token" in refused.remedy
    assert "PD_TOKEN" in unset.remedy


async def test_users_of_opsgenie_are_told_when_it_ends_and_what_replaces_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fakes.tool_servers.TOKEN", "GenieKey key")
    monkeypatch.setattr(os, "environ", {"OPSGENIE_KEY": "key"})
    async with TestServer(FakeOpsgenie({}).app()) as server, opened_host() as host:
        url = str(server.make_url("")).rstrip("/")
        found = await check_schedule(
            on_call(kind="opsgenie", url=url, token_env="OPSGENIE_KEY", schedules={"payments": "P1"}), host
        )
    assert (found.result, found.fatal) == ("says who is on call", False)
    assert "5 April 2027" in found.remedy
    assert "jira_service_management" in found.remedy


@pytest.mark.parametrize(
    ("token", "may_write", "well", "said"),
    [
        ("tool-token", True, True, "may write there"),
        ("tool-token", False, False, "may not write"),
        ("wrong", True, False, "refuses the token"),
        ("", True, False, "FILING_TOKEN"),
    ],
)
async def test_a_token_is_asked_whether_it_may_write_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, token: str, may_write: bool, well: bool, said: str
) -> None:
    tracker = FakeGitHub()
    tracker.may_write = may_write
    async with TestServer(tracker.app()) as server, opened_host() as host:
        url = str(server.make_url("")).rstrip("/")
        given = {"kind": "github_file", "name": "Handbook", "url": url, "repository": "acme/ops"}
        section = PUBLISHERS.validated({**given, "token_env": "FILING_TOKEN", "channels": ["incidents"]})
        monkeypatch.setattr(os, "environ", {"FILING_TOKEN": token})
        found = await check_filing(section, host)
    assert (found.well, found.fatal) == (well, False) or well
    assert said in f"{found.result} {found.remedy}"
    assert tracker.items == []


async def test_a_catalogue_is_counted_and_one_that_is_missing_is_no_fatal_finding(tmp_path: Path) -> None:
    workspace = load_workspace(None)
    (tmp_path / "CODEOWNERS").write_text("/till/ @acme/payments\n")
    async with opened_host() as host:
        found = await check_catalogue(CodeownersSection(kind="codeowners", path=tmp_path), workspace, host)
        missing = await check_catalogue(BackstageSection(kind="backstage", path=tmp_path / "no"), workspace, host)
    assert found.well
    assert "1 team, 1 rule" in found.result
    assert (missing.well, missing.fatal) == (False, False)


async def test_what_could_not_be_read_of_a_catalogue_is_named_with_its_file(tmp_path: Path) -> None:
    odd = "kind: Component\nmetadata: {name: gate%s, description: {$text: ./README.md}}\nspec: {owner: crew}\n"
    (tmp_path / "catalog-info.yaml").write_text("---\n".join(odd % number for number in range(12)))
    async with opened_host() as host:
        found = await check_catalogue(BackstageSection(kind="backstage", path=tmp_path), load_workspace(None), host)
    assert "1 team, 0 rules" in found.result
    assert "12 things left out:\n    catalog-info.yaml: Component default/gate0: description (" in found.result
    assert found.result.endswith("(Input should be a valid string)")
