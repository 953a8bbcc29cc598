"""What `plumbline doctor` says about the knowledge sources and about who may read what."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from bot.commands.doctor import check_source, run_doctor
from bot.config.section import SOURCES
from bot.config.settings import Settings, load_settings
from bot.config.workspace import load_workspace
from bot.wiring.application import open_core
from core.ports import Ingestion
from tests.fakes.confluence_server import TOKEN, FakeConfluence, Page
from tests.fakes.hosts import opened_host
from tests.fakes.slack_api import BOT_TOKEN, CHANNEL, PRIVATE_CHANNEL, SIGNING_SECRET, FakeSlack


async def remedy(**section: object) -> str:
    async with opened_host() as host:
        return (await check_source(SOURCES.validated(section), host)).remedy


async def test_a_folder_that_is_there_is_well_and_one_that_is_not_is_named(tmp_path: Path) -> None:
    assert await remedy(kind="folder", name="docs", path=tmp_path) == ""
    assert str(tmp_path / "gone") in await remedy(kind="folder", name="docs", path=tmp_path / "gone")


async def test_what_the_last_ingestion_could_not_read_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "plumbline.yaml"
    path.write_text("sources: [{kind: folder, name: docs, path: docs}]", encoding="utf-8")
    settings = load_settings(data_dir=tmp_path / "data", config=path)
    async with open_core(settings, load_workspace(path)) as core, core.store.transaction() as transaction:
        now = core.clock.now()
        await transaction.ingestions.record(Ingestion("docs", now, 3, "It is down.", ("a.pdf: It is odd.",)))
    out = io.StringIO()
    await run_doctor(settings, Console(file=out, width=200))
    assert "last ingestion of docs: failed" in out.getvalue()
    assert "a.pdf: It is odd." in out.getvalue()
    assert "! teams: none\n    Nobody is named as the owner of an incident" in out.getvalue()
    assert "! tools: none" in out.getvalue()
    assert "documents: none" not in out.getvalue()


async def test_a_tool_without_its_secret_is_no_fault_of_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ARGO_TOKEN", raising=False)
    path = tmp_path / "plumbline.yaml"
    path.write_text("tools: [{kind: argo_cd, url: 'https://argo.example', token_env: ARGO_TOKEN}]", encoding="utf-8")
    out = io.StringIO()
    await run_doctor(load_settings(data_dir=tmp_path / "data", config=path), Console(file=out, width=200))
    assert "start: the bot cannot start\n    Argo CD needs ARGO_TOKEN" in out.getvalue()
    assert "database and index" not in out.getvalue()


async def test_a_token_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeConfluence(cloud=True) as server:
        server.pages["1"] = Page("1", "A page", "<p>Text</p>")
        wiki = {"kind": "confluence", "name": "wiki", "url": server.url, "spaces": ("OPS",), "readers": ("public",)}
        monkeypatch.setenv("WIKI_TOKEN", TOKEN)
        assert await remedy(**wiki, token_env="WIKI_TOKEN") == ""
        monkeypatch.setenv("WIKI_TOKEN", "expired")
        assert "token" in await remedy(**wiki, token_env="WIKI_TOKEN")


async def test_a_token_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WIKI_TOKEN", raising=False)
    wiki = {"url": "https://wiki.example", "spaces": ("OPS",), "readers": ("public",), "token_env": "WIKI_TOKEN"}
    assert "WIKI_TOKEN" in await remedy(kind="confluence", name="wiki", **wiki)


async def test_a_space_that_shows_nothing_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIKI_TOKEN", TOKEN)
    async with FakeConfluence(cloud=False) as server:
        wiki = {"url": server.url, "spaces": ("OPS",), "readers": ("public",), "token_env": "WIKI_TOKEN"}
        assert "OPS" in await remedy(kind="confluence", name="wiki", **wiki)


async def test_a_channel_that_is_private_in_slack_alone_is_a_finding(tmp_path: Path) -> None:
    config = tmp_path / "plumbline.yaml"
    channels = f"[{{name: help, slack: {CHANNEL}}}, {{name: payments, slack: {PRIVATE_CHANNEL}}}]"
    config.write_text(f"channels: {channels}\n", encoding="utf-8")
    out = io.StringIO()
    async with FakeSlack() as slack:
        values = {"SLACK_BOT_TOKEN": BOT_TOKEN, "SLACK_SIGNING_SECRET": SIGNING_SECRET, "SLACK_API_URL": slack.url}
        paths = {"PLUMBLINE_CONFIG": config, "PLUMBLINE_DATA_DIR": tmp_path / "data"}
        code = await run_doctor(Settings.model_validate(values | paths), Console(file=out, width=200))
    assert code == 1
    assert "channel payments: is private in Slack" in out.getvalue()
    assert "channel help" not in out.getvalue()
