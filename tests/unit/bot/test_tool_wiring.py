"""Sections of plumbline.yaml become tools, and the doctor says what is wrong with them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.readers.definition import parsed
from adapters.tools.code_repository import CodeTool
from adapters.tools.section import ToolSection, open_tools
from bot.commands.doctor import check_tool
from bot.config.section import TOOLS
from bot.config.workspace import load_workspace
from bot.wiring.catalogues import open_on_call
from core.model.errors import ConfigurationError, ToolUnavailable
from core.ports import TimeWindow, Toolbox
from tests.fakes.hosts import opened_host
from tests.fakes.tool_servers import FakeKubernetes, FakeToolServer, reached

START = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
CONFIGURED = """
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
    path.write_text(CONFIGURED, encoding="utf-8")
    return path


async def test_every_kind_of_tool_can_be_configured(file: Path) -> None:
    async with opened_host() as host:
        tools = open_tools(load_workspace(file).tools, host)
    assert [each.name for each in tools.logs] == ["Loki", "Kubernetes"]
    assert [each.name for each in tools.changes] == [
        "GitHub Actions",
        "GitLab CI",
        "Azure DevOps",
        "code history",
    ]
    assert [each.name for each in tools.code] == ["code"]
    assert [each.name for each in tools.graphs] == ["trace files", "Jaeger", "Zipkin"]
    boxes: list[Toolbox] = list(tools.toolboxes)
    servers = ["GitHub Actions", "GitLab CI", "Azure DevOps", "Jenkins"]
    assert [each.name for each in boxes] == ["Kubernetes", *servers, "orders"]


FILE = """
teams: [{id: payments, name: Payments}]
tools:
  - {kind: prometheus, url: "http://prometheus.invalid:9090"}
  - {kind: loki, url: "http://loki.invalid", services: {till: {app: till}}, token_env: CI_TOKEN, tenant: shop, name: logs}
  - {kind: jaeger, url: "http://jaeger.invalid:16686", name: calls}
  - {kind: zipkin, url: "http://zipkin.invalid:9411", token_env: CI_TOKEN}
on_call:
  - {kind: pagerduty, token_env: CI_TOKEN, schedules: {payments: P1}, escalation_policies: {payments: [P2, P3]}}
  - {kind: jira_service_management, cloud_id: c1, email: a@b.example, token_env: CI_TOKEN, schedules: {payments: [S1]}}
  - {kind: opsgenie, url: "https://api.eu.opsgenie.com", name: Rota, token_env: CI_TOKEN, schedules: {payments: Night}}
"""


@pytest.fixture
def named(file: Path) -> Path:
    file.write_text(FILE, encoding="utf-8")
    return file


async def test_systems_of_file_open_under_its_names_or_their_own(named: Path) -> None:
    workspace = load_workspace(named)
    async with opened_host() as host:
        tools = open_tools(workspace.tools, host)
        schedules = open_on_call(workspace.on_call, workspace.teams, host)
    assert [each.name for each in (*tools.logs, *tools.metrics, *tools.monitors, *tools.graphs)] == [
        "logs",
        "Prometheus",
        "Prometheus",
        "calls",
        "Zipkin",
    ]
    assert [each.name for each in schedules[:3]] == ["PagerDuty", "Jira Service Management", "Rota"]
    assert all(each.teams == {"payments"} for each in schedules[:3])


OWN = """
title: Tills
reference: ["https://tills.example/api"]
settings: {floor: {about: The floor., default: "2"}, shop: {about: The shop.}}
secrets: {token: {about: A token.}}
authentication: {headers: {X-Api-Key: "${token}"}}
logs:
  request: {path: "api/${floor}/logs", query: {service: "${service}", shop: "${shop}"}}
  partial: {never: the example has no partial answers}
  items: $.records
  at: $.time
  text: $.message
"""


async def test_a_definition_beside_the_file_is_a_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILLS_TOKEN", "hidden")

    async def logs(request: web.Request) -> web.Response:
        asked.append((request.path_qs, request.headers["X-Api-Key"]))
        return web.json_response({"records": [{"time": "2026-03-14T09:00:00Z", "message": "ERROR no paper"}]})

    asked: list[tuple[str, str]] = []
    app = web.Application()
    app.router.add_get("/{path:.*}", logs)
    file = tmp_path / "plumbline.yaml"
    (tmp_path / "tills.yaml").write_text(OWN, encoding="utf-8")
    async with TestServer(app) as server, opened_host() as host:
        own = f"{{kind: reader, name: tills, url: '{server.make_url('')}', definition: tills.yaml"
        own += ", settings: {shop: a&b}, secrets: {token: TILLS_TOKEN}}"
        file.write_text(f"tools:\n  - {own}\n", encoding="utf-8")
        (tills,) = open_tools(load_workspace(file).tools, host).logs
        (line,) = await tills.lines("till", TimeWindow(START, START + timedelta(hours=1)), 10)
    assert (tills.name, line.level, line.text) == ("tills", "ERROR", "ERROR no paper")
    assert asked == [("/api/2/logs?service=till&shop=a%26b", "hidden")]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ("items: $.records", "items: $.records["),
        ("  at: $.time\n", ""),
        ("${shop}", "${till}"),
        ('query: {service: "${service}"', 'query: {service: "s:${service}"'),
        ('query: {service: "${service}"', 'query: {service: "${service:raw}"'),
        ('X-Api-Key: "${token}"', 'X-Api-Key: "${service}"'),
        ("title: Tills", "title: [Tills"),
    ],
)
async def test_a_definition_that_cannot_work_is_a_mistake(wrong: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "tills.yaml").write_text(OWN.replace(wrong, problem), encoding="utf-8")
    section = {"kind": "reader", "name": "tills", "url": "http://tills.invalid", "definition": tmp_path / "tills.yaml"}
    given = {"settings": {"shop": "a"}, "secrets": {"token": "TILLS_TOKEN"}}
    async with opened_host() as host:
        with pytest.raises(ConfigurationError, match=r"tills\.yaml"):
            TOOLS.validated(section | given).open(host)


async def test_what_a_definition_needs_and_its_tool_lacks_is_named(tmp_path: Path) -> None:
    (tmp_path / "tills.yaml").write_text(OWN, encoding="utf-8")
    section = {"kind": "reader", "name": "tills", "url": "http://tills.invalid", "definition": tmp_path / "tills.yaml"}
    async with opened_host() as host:
        with pytest.raises(ConfigurationError, match=r"needs `settings: \{shop: VALUE\}`: tills\.yaml asks for it"):
            TOOLS.validated(section).open(host)
        with pytest.raises(ConfigurationError, match=r"needs `secrets: \{token: VARIABLE\}`"):
            TOOLS.validated(section | {"settings": {"shop": "a"}, "secrets": {"tokn": "TILLS_TOKEN"}}).open(host)


def test_a_form_that_no_time_has_is_named_with_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"use iso, seconds, .* or, as a number, s, ms, "):
        parsed(OWN.replace('shop: "${shop}"', 'from: "${start:milliseconds}"'), "tills.yaml")


def test_the_example_of_a_definition_is_the_one_that_is_explained() -> None:
    root = Path(__file__).parents[3]
    example = (root / "docs" / "examples" / "readers" / "tills.yaml").read_text(encoding="utf-8")
    assert example in (root / "docs" / "tools.md").read_text(encoding="utf-8")
    assert parsed(example, "tills.yaml").logs


async def test_checkouts_are_relative_to_the_file(file: Path) -> None:
    (code,) = [each for each in load_workspace(file).tools if isinstance(each, CodeTool)]
    assert code.services == {"till": file.parent / "checkouts" / "till"}


async def test_a_token_that_is_not_set_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLUSTER_TOKEN")
    async with opened_host() as host:
        with pytest.raises(ConfigurationError, match="CLUSTER_TOKEN"):
            open_tools(load_workspace(file).tools, host)


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
    return TOOLS.validated(section)


async def test_the_doctor_asks_a_tool_and_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLUSTER_TOKEN", "tool-token")
    fake: FakeToolServer = FakeKubernetes()
    async with reached(fake) as http, opened_host() as host:
        section = kubernetes(http.url)
        assert (await check_tool(section, host)).well
        fake.refuse(403)
        assert "refuses the token" in (await check_tool(section, host)).remedy
        monkeypatch.delenv("CLUSTER_TOKEN")
        assert "CLUSTER_TOKEN" in (await check_tool(section, host)).remedy


async def test_the_doctor_misses_a_checkout(tmp_path: Path) -> None:
    section = TOOLS.validated({"kind": "code", "services": {"till": tmp_path / "gone"}})
    async with opened_host() as host:
        assert len(section.open(host).checked) == 1
        assert "gone of till does not exist" in (await check_tool(section, host)).remedy


async def test_the_doctor_names_a_file_without_traces(tmp_path: Path) -> None:
    section = TOOLS.validated({"kind": "trace_files", "path": tmp_path})
    async with opened_host() as host:
        finding = await check_tool(section, host)
        assert (finding.well, finding.result) == (True, str(tmp_path))
        (tmp_path / "odd.json").write_text('{"data": []}', encoding="utf-8")
        assert "odd.json: left out (no span with a service.name" in (await check_tool(section, host)).remedy


async def test_the_doctor_counts_the_lines_of_a_log_that_cannot_be_read(tmp_path: Path) -> None:
    section = TOOLS.validated({"kind": "log_files", "path": tmp_path, "timezone": "Europe/Berlin"})
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "till.log").write_text("2026-03-14 09:12:03 ERROR jammed\n", encoding="utf-8")
    async with opened_host() as host:
        assert (await check_tool(section, host)).well
        (tmp_path / "logs" / "press.log").write_text("jammed at noon\njammed again\n", encoding="utf-8")
        finding = await check_tool(section, host)
    assert (finding.well, finding.fatal, finding.result) == (False, False, "cannot be read in full")
    assert "press.log: left out (2 lines without a time that is understood)" in finding.remedy


async def test_the_doctor_asks_an_mcp_server_for_its_tools() -> None:
    section = {"kind": "mcp", "name": "orders", "url": "http://127.0.0.1:9/mcp", "tools": {"list_orders": "Orders."}}
    async with opened_host() as host:
        finding = await check_tool(TOOLS.validated(section), host)
    assert (finding.result, finding.fatal) == ("cannot be read", True)
    assert "orders cannot be used" in finding.remedy


@pytest.mark.parametrize("kind", ["loki", "prometheus"])
async def test_a_password_in_an_address_is_not_told(kind: str) -> None:
    url = {"kind": kind, "url": "http://reader:hidden@127.0.0.1:9"}
    section = url | ({"services": {"till": {"app": "till"}}} if kind == "loki" else {})
    now = datetime(2026, 3, 14, tzinfo=UTC)
    async with opened_host() as host:
        tools = TOOLS.validated(section).open(host)
        with pytest.raises(ToolUnavailable) as caught:
            await asyncio.gather(
                *(each.lines("till", TimeWindow(now, now + timedelta(hours=1)), 1) for each in tools.logs),
                *(each.series("till", TimeWindow(now, now + timedelta(hours=1))) for each in tools.metrics),
            )
    assert "127.0.0.1:9" in str(caught.value)
    assert "hidden" not in str(caught.value)
