"""Sections of plumbline.yaml that name a source, and the sources that they become."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from adapters.section import Host
from adapters.sources.sharepoint import SharePointSource
from bot.config.settings import load_settings
from bot.config.workspace import Workspace, load_workspace
from core.model.errors import ConfigurationError
from core.ports import ChangingSource
from tests.fakes.clock import FakeClock
from tests.fakes.door_secrets import LOCKED

CONFLUENCE: dict[str, Any] = {
    "kind": "confluence",
    "name": "wiki",
    "url": "https://acme.atlassian.net/wiki",
    "spaces": ["OPS"],
    "token_env": "WIKI_TOKEN",
    "readers": ["public"],
}
SECTIONS: dict[str, dict[str, Any]] = {
    "folder": {"kind": "folder", "name": "docs", "path": "documents", "readers": ["channel:ops"]},
    "threads": {"kind": "chat_threads", "name": "chat", "path": "threads.jsonl"},
    "incidents": {"kind": "past_incidents", "name": "incidents", "path": "incidents.jsonl"},
    "slack export": {"kind": "slack_export", "name": "old-slack", "path": "export.zip"},
    "git clone": {"kind": "git_repository", "name": "runbooks", "path": "clone"},
    "git url": {
        "kind": "git_repository",
        "name": "runbooks",
        "url": "https://git.example/docs.git",
        "token_env": "GIT_TOKEN",
    },
    "confluence": CONFLUENCE,
    "confluence cloud": CONFLUENCE | {"email": "bot@acme.example", "identities": {"group:ops": ["channel:ops"]}},
    "azure wiki": {
        "kind": "azure_devops_wiki",
        "name": "azure",
        "url": "https://dev.azure.com/acme",
        "project": "Shop",
        "wiki": "Shop.wiki",
        "token_env": "WIKI_TOKEN",
        "readers": ["public"],
    },
    "slack": {"kind": "slack_channels", "name": "slack", "channels": ["C0CICD"]},
    "teams": {
        "kind": "teams_channels",
        "name": "teams",
        "tenant_id": "t",
        "client_id": "c",
        "client_secret_env": "GRAPH_SECRET",
        "teams": {"team-1": []},
    },
}
SECTIONS["sharepoint"] = {
    **{key: SECTIONS["teams"][key] for key in ("tenant_id", "client_id", "client_secret_env")},
    "kind": "sharepoint",
    "name": "intranet",
    "sites": ["https://acme.sharepoint.com/sites/ops"],
}
SECTIONS["notion"] = {"kind": "notion", "name": "notes", "token_env": "NOTION_TOKEN", "readers": ["channel:ops"]}
SECRETS = (
    "NOTION_TOKEN",
    "WIKI_TOKEN",
    "GIT_TOKEN",
    "GRAPH_SECRET",
    "SLACK_BOT_TOKEN",
    "SLACK_SIGNING_SECRET",
    *LOCKED,
)


def workspace(folder: Path, section: dict[str, Any], **more: object) -> Workspace:
    path = folder / "plumbline.yaml"
    path.write_text(yaml.safe_dump({"sources": [section], **more}), encoding="utf-8")
    return load_workspace(path)


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as opened:
        yield opened


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, f"value-of-{name}")


@pytest.mark.usefixtures("secrets")
@pytest.mark.parametrize("kind", SECTIONS)
async def test_every_section_becomes_a_source_of_its_name(
    kind: str, tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    (section,) = workspace(tmp_path, SECTIONS[kind]).sources
    source = section.open(Host(load_settings(data_dir=tmp_path), session, FakeClock()))
    assert source.name == section.name
    assert isinstance(source, ChangingSource) == (
        kind.partition(" ")[0] in {"folder", "git", "confluence", "azure", "slack", "teams", "sharepoint", "notion"}
        and "export" not in kind
    )
    assert section.place


@pytest.mark.parametrize(
    ("kind", "variable"),
    [
        ("confluence", "WIKI_TOKEN"),
        ("git url", "GIT_TOKEN"),
        ("teams", "GRAPH_SECRET"),
        ("sharepoint", "GRAPH_SECRET"),
        ("notion", "NOTION_TOKEN"),
        ("slack", "SLACK_BOT_TOKEN"),
    ],
)
async def test_a_secret_that_is_not_set_is_named(
    kind: str, variable: str, tmp_path: Path, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(variable, raising=False)
    (section,) = workspace(tmp_path, SECTIONS[kind]).sources
    with pytest.raises(ConfigurationError, match=f"{section.name} needs {variable}"):
        section.open(Host(load_settings(data_dir=tmp_path), session, FakeClock()))


@pytest.mark.usefixtures("secrets")
async def test_downloads_from_sharepoint_come_from_configured_sites_alone(
    tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    (section,) = workspace(tmp_path, SECTIONS["sharepoint"]).sources
    source = section.open(Host(load_settings(data_dir=tmp_path), session, FakeClock()))
    assert isinstance(source, SharePointSource)
    assert source.server.elsewhere == {"acme.sharepoint.com"}


@pytest.mark.parametrize(
    "section",
    [
        CONFLUENCE | {"readers": []},
        {key: value for key, value in CONFLUENCE.items() if key != "readers"},
        CONFLUENCE | {"token": "in the file"},
        CONFLUENCE | {"token_env": "not a name"},
        CONFLUENCE | {"spaces": []},
        {"kind": "git_repository", "name": "x"},
        {"kind": "git_repository", "name": "x", "path": "a", "url": "https://git.example/docs.git"},
        {"kind": "slack_channels", "name": "x", "channels": []},
        {"kind": "folder", "name": "a/b", "path": "a"},
        {key: value for key, value in SECTIONS["notion"].items() if key != "readers"},
        SECTIONS["sharepoint"] | {"sites": []},
        SECTIONS["sharepoint"] | {"sites": ["http://acme.sharepoint.com/sites/ops"]},
    ],
    ids=[
        "nobody reads",
        "who reads?",
        "secret in the file",
        "no variable",
        "no space",
        "nowhere",
        "twice",
        "no channel",
        "a path",
        "who reads Notion?",
        "no site",
        "a site without TLS",
    ],
)
def test_a_section_that_makes_no_sense_is_refused(section: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        workspace(tmp_path, section)


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    for kind in ("folder", "slack export", "git clone"):
        (section,) = workspace(tmp_path, SECTIONS[kind]).sources
        assert getattr(section, "path").parent == tmp_path  # noqa: B009 — of those sections that have one


def test_names_to_take_out_of_every_document_are_a_setting(tmp_path: Path) -> None:
    found = workspace(tmp_path, SECTIONS["folder"], privacy={"names": ["Asha Brandt"]})
    assert found.private_names == ("Asha Brandt",)
