"""Sections of plumbline.yaml become tools, and the doctor says what is wrong with them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from pydantic import TypeAdapter

from bot.commands.doctor import check_tool
from bot.config.tool_sections import ToolSection
from bot.config.workspace import load_workspace
from bot.wiring.tools import open_tool, open_tools
from core.model.errors import ConfigurationError, ToolUnavailable
from core.ports import TimeWindow, Toolbox
from tests.fakes.tool_servers import FakeKubernetes, FakeToolServer, reached

TOOLS = """
tools:
  - {kind: loki, url: "http://loki.invalid:3100", services: {till: {app: till}}, tenant: shop}
  - kind: kubernetes
    url: https://cluster.invalid
    token_env: CLUSTER_TOKEN
    services: {till: {namespace: live, selector: app=till}}
  - {kind: github_actions, services: {till: acme/till}, token_env: CI_TOKEN, log_hosts: [logs.invalid]}
  - {kind: gitlab_ci, services: {till: acme/till}, token_env: CI_TOKEN}
  - {kind: azure_devops, url: "https://ci.invalid/acme", services: {till: Shop/12}, token_env: CI_TOKEN}
  - {kind: jenkins, url: "http://ci.invalid", services: {till: acme/till}, user: reader, token_env: CI_TOKEN}
  - {kind: code, services: {till: checkouts/till}}
  - {kind: trace_files, path: traces}
  - {kind: jaeger, url: "http://jaeger.invalid:16686"}
  - {kind: zipkin, name: Zipkin, url: "http://zipkin.invalid:9411", token_env: CI_TOKEN}
  - {kind: mcp, name: orders, url: "http://mcp.invalid/mcp", tools: {list_orders: The orders of a service.}}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLUSTER_TOKEN", "cluster")
    monkeypatch.setenv("CI_TOKEN", "ci")
    path = tmp_path / "plumbline.yaml"
    path.write_text(TOOLS, encoding="utf-8")
    return path


async def test_every_kind_of_tool_can_be_configured(file: Path) -> None:
    async with aiohttp.ClientSession() as session:
        tools = open_tools(load_workspace(file).tools, session)
    assert [each.name for each in tools.logs] == ["Loki", "Kubernetes"]
    assert [each.name for each in tools.changes] == [
        "GitHub Actions changes",
        "GitLab CI changes",
        "Azure DevOps changes",
        "code history",
    ]
    assert [each.name for each in tools.code] == ["code"]
    assert [each.name for each in tools.graphs] == ["trace files", "traces", "Zipkin"]
    boxes: list[Toolbox] = list(tools.toolboxes)
    servers = ["GitHub Actions", "GitLab CI", "Azure DevOps", "Jenkins"]
    assert [each.name for each in boxes] == ["Kubernetes", *servers, "orders"]


async def test_checkouts_are_relative_to_the_file(file: Path) -> None:
    (code,) = [each for each in load_workspace(file).tools if each.kind == "code"]
    assert code.services == {"till": file.parent / "checkouts" / "till"}


async def test_a_token_that_is_not_set_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLUSTER_TOKEN")
    async with aiohttp.ClientSession() as session:
        with pytest.raises(ConfigurationError, match="CLUSTER_TOKEN"):
            open_tools(load_workspace(file).tools, session)


@pytest.mark.parametrize(
    "section",
    [
        "{kind: loki, url: 'file:///etc/passwd', services: {till: {app: till}}}",
        "{kind: loki, url: 'http://loki', services: {}}",
        "{kind: mcp, name: orders, url: 'http://mcp', tools: {}}",
        "{kind: code, services: {}}",
        "{kind: azure_devops, url: 'https://ci', token_env: CI_TOKEN, services: {till: Shop}}",
    ],
)
def test_a_section_that_reads_nothing_is_a_mistake(section: str, file: Path) -> None:
    file.write_text(f"tools:\n  - {section}\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="line 2"):
        load_workspace(file)


def kubernetes(url: str) -> ToolSection:
    workload = {"namespace": "live", "selector": "app=api"}
    section = {"kind": "kubernetes", "url": url, "token_env": "CLUSTER_TOKEN", "services": {"api": workload}}
    return TypeAdapter(ToolSection).validate_python(section)


async def test_the_doctor_asks_a_tool_and_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLUSTER_TOKEN", "tool-token")
    fake: FakeToolServer = FakeKubernetes()
    async with reached(fake) as http:
        section = kubernetes(http.url)
        assert (await check_tool(section, http.session)).well
        fake.refuse(403)
        assert "refuses the token" in (await check_tool(section, http.session)).remedy
        monkeypatch.delenv("CLUSTER_TOKEN")
        assert "CLUSTER_TOKEN" in (await check_tool(section, http.session)).remedy


async def test_the_doctor_misses_a_checkout(tmp_path: Path) -> None:
    section = TypeAdapter(ToolSection).validate_python({"kind": "code", "services": {"till": tmp_path / "gone"}})
    async with aiohttp.ClientSession() as session:
        assert len(open_tool(section, session).checked) == 1
        assert "gone of till does not exist" in (await check_tool(section, session)).remedy


async def test_the_doctor_names_a_file_without_traces(tmp_path: Path) -> None:
    section = TypeAdapter(ToolSection).validate_python({"kind": "trace_files", "path": tmp_path})
    async with aiohttp.ClientSession() as session:
        finding = await check_tool(section, session)
        assert (finding.well, finding.result) == (True, str(tmp_path))
        (tmp_path / "odd.json").write_text('{"data": []}', encoding="utf-8")
        assert "odd.json: left out (no span with a service.name" in (await check_tool(section, session)).remedy


async def test_the_doctor_asks_an_mcp_server_for_its_tools() -> None:
    section = {"kind": "mcp", "name": "orders", "url": "http://127.0.0.1:9/mcp", "tools": {"list_orders": "Orders."}}
    async with aiohttp.ClientSession() as session:
        finding = await check_tool(TypeAdapter(ToolSection).validate_python(section), session)
    assert (finding.result, finding.fatal) == ("cannot be read", True)
    assert "orders cannot be used" in finding.remedy


@pytest.mark.parametrize("kind", ["loki", "prometheus"])
async def test_a_password_in_an_address_is_not_told(kind: str) -> None:
    url = {"kind": kind, "url": "http://reader:hidden@127.0.0.1:9"}
    section = url | ({"services": {"till": {"app": "till"}}} if kind == "loki" else {})
    now = datetime(2026, 3, 14, tzinfo=UTC)
    async with aiohttp.ClientSession() as session:
        tools = open_tool(TypeAdapter(ToolSection).validate_python(section), session)
        with pytest.raises(ToolUnavailable) as caught:
            await asyncio.gather(
                *(each.lines("till", TimeWindow(now, now + timedelta(hours=1)), 1) for each in tools.logs),
                *(each.series("till", TimeWindow(now, now + timedelta(hours=1))) for each in tools.metrics),
            )
    assert "127.0.0.1:9" in str(caught.value)
    assert "hidden" not in str(caught.value)
