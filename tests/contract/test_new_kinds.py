"""One module is all that a new kind of thing needs: it is found, configured, described and used."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import io
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestClient, TestServer
from dbos._dbos import _get_or_create_dbos_registry
from pydantic import TypeAdapter
from rich.console import Console

import adapters
from adapters import alerts, catalogues, publishers, sources, tools
from adapters.chat import CHATS
from adapters.clock import SystemClock
from adapters.section import Kinds
from adapters.tools.section import open_tools
from bot.commands.doctor import check_catalogue, check_filing, check_source, check_tool, run_doctor
from bot.config.section import CATALOGUES, FORMATS, PUBLISHERS, SOURCES, TOOLS
from bot.config.settings import Settings, load_settings
from bot.config.workspace import json_schema, load_workspace
from bot.server import running
from bot.web.routes import Webhooks, build_app
from bot.web.webhook_sources import describe, webhook_sources
from bot.wiring.application import ingest, open_core
from bot.wiring.catalogues import with_catalogues
from core.model.alert import AlertDelivery
from core.model.conversation import Place, Platform
from core.model.document import Document
from core.model.errors import ConfigurationError
from core.model.incident import Report, marker_of
from core.ports import ChangingSource, TimeWindow
from tests.fakes.hosts import opened_host
from tests.fakes.new_kinds.package import NEW_KINDS, added_to

PACKAGES = (alerts, catalogues, publishers, sources, tools)
SECRET = "a secret of the fax machine alone"
KNOWN = {"Authorization": f"Bearer {SECRET}"}


@pytest.fixture
def fax() -> Iterator[None]:
    """A fax machine, which is a new kind of everything."""
    with ExitStack() as stack:
        for package in PACKAGES:
            stack.enter_context(added_to(package, NEW_KINDS / package.__name__.rpartition(".")[2]))
        stack.enter_context(added_to(adapters, NEW_KINDS / "chats"))
        yield


EXISTING = {
    "filing": "github_issue, gitlab_file",
    "sources": "folder, git_repository",
    "catalogues": "backstage, codeowners",
}
REPORT = Report(
    marker_of("i1", "fax"), "Paper is out", "Load paper.", "2026-03-14-i1", datetime(2026, 3, 14, tzinfo=UTC)
)


def configured(folder: Path, text: str) -> Path:
    file = folder / "plumbline.yaml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.usefixtures("fax")
async def test_signed_webhook_of_a_new_module_reaches_the_bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAX_SECRET", SECRET)
    workspace = load_workspace(configured(tmp_path, "webhooks: {fax: {secret_env: FAX_SECRET}}"))
    received = list[AlertDelivery]()

    async def accept(delivery: AlertDelivery) -> str:
        received.append(delivery)
        return "i1"

    async def ready() -> str:
        return ""

    webhooks = Webhooks(webhook_sources(workspace.webhooks), accept, "another secret", SystemClock())
    app = build_app(webhooks=webhooks, chats={}, ready=ready, add_console=lambda _: None)
    body = json.dumps({"number": 7, "title": "Paper is out"}).encode()
    signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    statuses = list[int]()
    async with TestClient(TestServer(app)) as client:
        for signed in (signature, signature[::-1]):
            headers = {"X-Fax-Signature": signed, "Content-Type": "application/json"}
            async with client.post("/webhooks/fax", data=body, headers=headers) as response:
                statuses.append(response.status)
    assert statuses == [202, 401]
    assert [(each.source, each.group_key, each.alerts[0].summary) for each in received] == [
        ("fax", "7", "Paper is out")
    ]


@pytest.mark.usefixtures("fax")
def test_webhook_of_a_new_module_is_in_both_schemas() -> None:
    assert "fax" in json_schema()["$defs"]["WebhooksSection"]["properties"]
    assert "/webhooks/fax" in describe()["paths"]


@pytest.mark.usefixtures("fax")
def test_wrong_setting_of_a_webhook_names_its_line(tmp_path: Path) -> None:
    file = configured(tmp_path, "name: x\nwebhooks:\n  fax:\n    secret: FAX_SECRET\n")
    with pytest.raises(ConfigurationError, match=r"line 4: webhooks\.fax\.secret: unknown key\.$"):
        load_workspace(file)


def test_webhook_that_no_module_declares_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"line 1: webhooks\.fax: no sender has this name: give it a `title` or a `preset`\.$"
    ):
        load_workspace(configured(tmp_path, "webhooks: {fax: {secret_env: FAX_SECRET}}"))


def test_two_modules_that_claim_one_webhook_are_an_error(tmp_path: Path) -> None:
    text = (NEW_KINDS / "alerts" / "fax.py").read_text(encoding="utf-8")
    (tmp_path / "telex.py").write_text(text.replace('"fax"', '"grafana"'), encoding="utf-8")
    expected = r"^adapters\.alerts\.alertmanager and adapters\.alerts\.telex both declare grafana: rename or remove one of them\.$"
    with added_to(alerts, tmp_path), pytest.raises(ValueError, match=expected):
        FORMATS.all()


FILING = """
channels: [{name: incidents, console: incidents}]
filing:
  - {kind: fax, name: Fax, url: URL, line: LINE, token_env: FAX_SECRET, channels: [incidents]}
"""


@pytest.mark.usefixtures("fax")
async def test_report_is_filed_by_a_new_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAX_SECRET", SECRET)
    sheets = list[dict[str, str]]()

    async def send(request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == f"Bearer {SECRET}"
        sheets.append({"number": str(len(sheets) + 1), "text": (await request.json())["text"]})
        return web.json_response(sheets[-1])

    async def received(_: web.Request) -> web.Response:
        return web.json_response(sheets)

    app = web.Application()
    app.add_routes([web.post("/lines/112", send), web.get("/lines/112", received)])
    async with TestServer(app) as server, opened_host() as systems:
        url = str(server.make_url("")).rstrip("/")
        file = configured(tmp_path, FILING.replace("URL", url).replace("LINE", '"112"'))
        (section,) = load_workspace(file).filing
        finding = await check_filing(section, systems)
        publisher = section.open(systems)
        filed = await publisher.file(REPORT)
        assert await publisher.find(REPORT) == filed
    assert (finding.well, finding.result) == (True, "fax: the token may write there")
    assert (section.target.name, filed.key, len(sheets)) == ("Fax", "1", 1)


@pytest.mark.usefixtures("fax")
def test_wrong_setting_of_a_publisher_names_its_line(tmp_path: Path) -> None:
    file = configured(tmp_path, FILING.replace("URL", "https://fax.example").replace("LINE", "a-b"))
    with pytest.raises(ConfigurationError, match=r"line 4: filing\.0\.line: String should match pattern"):
        load_workspace(file)


DOCUMENTS = "sources: [{kind: fax, name: faxes, path: faxes, readers: [public]}]"


@pytest.mark.usefixtures("fax")
async def test_documents_are_read_by_a_new_module(tmp_path: Path) -> None:
    (tmp_path / "faxes").mkdir()
    (tmp_path / "faxes" / "1.fax").write_text("Load paper\nOpen the lid.", encoding="utf-8")
    (section,) = load_workspace(configured(tmp_path, DOCUMENTS)).sources
    async with opened_host() as systems:
        finding = await check_source(section, systems)
        source = section.open(systems)
        assert not isinstance(source, ChangingSource)
        documents = [each async for each in source.documents() if isinstance(each, Document)]
    assert (finding.well, finding.result) == (True, "fax faxes")
    assert [(each.id, each.title, each.text) for each in documents] == [("faxes/1", "Load paper", "Open the lid.")]


@pytest.mark.usefixtures("fax")
def test_wrong_setting_of_a_source_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"line 1: sources\.0\.readers: Tuple should have at least 1 item"):
        load_workspace(configured(tmp_path, DOCUMENTS.replace("[public]", "[]")))


@pytest.mark.usefixtures("fax")
async def test_teams_come_from_a_catalogue_of_a_new_module(tmp_path: Path) -> None:
    (tmp_path / "directory.fax").write_text("payments till gateway\nsupply shelf", encoding="utf-8")
    workspace = load_workspace(configured(tmp_path, "catalogues: [{kind: fax, path: .}]"))
    async with opened_host() as systems:
        finding = await check_catalogue(workspace.catalogues[0], workspace, systems)
        teams = (await with_catalogues(workspace, systems)).teams
    assert finding.well
    assert finding.result.startswith("2 teams, ")
    assert {team.id: team.services for team in teams} == {"payments": {"till", "gateway"}, "supply": {"shelf"}}


@pytest.mark.usefixtures("fax")
def test_wrong_setting_of_a_catalogue_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"line 1: catalogues\.0\.file: String should match pattern"):
        load_workspace(configured(tmp_path, "catalogues: [{kind: fax, path: ., file: directory.txt}]"))


TOOL = "tools: [{kind: fax, url: URL, services: {till: SERVICE}, token_env: FAX_SECRET}]"


@pytest.mark.usefixtures("fax")
async def test_records_are_read_by_a_new_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAX_SECRET", SECRET)

    async def journal(request: web.Request) -> web.Response:
        status = 200 if request.headers["Authorization"] == f"Bearer {SECRET}" else 401
        return web.json_response([{"at": "2026-03-14T09:30:00Z", "text": "paper is out"}], status=status)

    app = web.Application()
    app.add_routes([web.get("/lines/112/journal", journal)])
    async with TestServer(app) as server, opened_host() as systems:
        url = str(server.make_url("")).rstrip("/")
        workspace = load_workspace(configured(tmp_path, TOOL.replace("URL", url).replace("SERVICE", '"112"')))
        finding = await check_tool(workspace.tools[0], systems)
        (logs,) = open_tools(workspace.tools, systems).logs
        day = TimeWindow(datetime(2026, 3, 14, tzinfo=UTC), datetime(2026, 3, 15, tzinfo=UTC))
        (line,) = await logs.lines("till", day, 10)
    assert (finding.what, finding.result) == ("fax", "fax accepts the credentials")
    assert line.text == "paper is out"


@pytest.mark.usefixtures("fax")
def test_wrong_setting_of_a_tool_names_its_line(tmp_path: Path) -> None:
    file = configured(tmp_path, TOOL.replace("URL", "fax://till").replace("SERVICE", '"112"'))
    with pytest.raises(ConfigurationError, match=r"line 1: tools\.0\.url: String should match pattern"):
        load_workspace(file)


CHAT = """
channels: [{name: repairs, fax: "112"}]
sources: [{kind: folder, name: manuals, path: manuals}]
"""
ADVICE = "To load paper, open the lid on the left and push the tray until it clicks."


@pytest.mark.usefixtures("fax")
async def test_a_new_chat_takes_questions_and_gets_answers_and_incidents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The engine holds one instance per process, and has no public way to forget it.
    monkeypatch.setattr(_get_or_create_dbos_registry(), "instance_info_map", {})
    (tmp_path / "manuals").mkdir()
    (tmp_path / "manuals" / "paper.md").write_text(f"# Load paper\n\n{ADVICE}\n", encoding="utf-8")
    printed = asyncio.Queue[dict[str, str]]()

    async def send(request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == KNOWN["Authorization"]
        await printed.put(await request.json())
        return web.json_response({"number": "8"})

    app = web.Application()
    app.add_routes([web.post("/lines/112", send)])
    async with TestServer(app) as machine, ClientSession() as session:
        variables = {"FAX_TOKEN": SECRET, "FAX_URL": str(machine.make_url("")).rstrip("/"), "PLUMBLINE_PORT": 0}
        variables |= {"PLUMBLINE_DATA_DIR": tmp_path / "data", "PLUMBLINE_EMBEDDINGS": "none"}
        workspace = load_workspace(configured(tmp_path, CHAT))
        async with open_core(Settings.model_validate(variables), workspace) as core:
            await ingest(core)
            async with running(core) as address, asyncio.timeout(20):
                fax = {"number": "7", "line": "112", "sender": "Ada", "text": "How do I load paper?"}
                statuses = [await posted(session, f"{address}fax", fax, each) for each in ({}, KNOWN)]
                answer = await sheet_with(ADVICE, printed)
                statuses.append(await posted(session, f"{address}webhooks/fax", {"number": "9", "title": "Jam"}, {}))
                incident = await sheet_with("Jam", printed)
    assert statuses == [401, 202, 202]
    assert (answer["copy_to"], incident["copy_to"]) == ("7", "")


async def sheet_with(words: str, printed: asyncio.Queue[dict[str, str]]) -> dict[str, str]:
    """Return the next sheet with these words, which may follow one that says that the bot is at work."""
    while words not in " ".join((sheet := await printed.get())["text"].split()):
        pass
    return sheet


async def posted(session: ClientSession, address: str, body: object, headers: Mapping[str, str]) -> int:
    async with session.post(address, json=body, headers=headers) as response:
        return response.status


@pytest.mark.usefixtures("fax")
def test_wrong_setting_of_a_chat_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAX_TOKEN", SECRET)
    with pytest.raises(ConfigurationError, match=r"because of FAX_TOKEN: set PLUMBLINE_WEBHOOK_SECRET and"):
        load_settings()


@pytest.mark.usefixtures("fax")
async def test_doctor_knows_a_new_chat() -> None:
    said = io.StringIO()
    assert await run_doctor(Settings.model_validate({"FAX_TOKEN": SECRET}), Console(file=said, width=200), "fax") == 1
    assert "Fax: is on" in said.getvalue()


async def test_doctor_names_the_chats_if_there_is_no_such_one() -> None:
    with pytest.raises(ConfigurationError, match=r"^There is no chat fax: use one of slack, teams\.$"):
        await run_doctor(Settings.model_validate({}), Console(quiet=True), "fax")


def test_channel_of_a_chat_that_no_package_declares_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"line 2: channels\.0\.fax: unknown key\.$"):
        load_workspace(configured(tmp_path, CHAT))


def test_two_packages_that_claim_one_chat_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "telex").mkdir()
    text = (NEW_KINDS / "chats" / "fax" / "chat.py").read_text(encoding="utf-8")
    (tmp_path / "telex" / "__init__.py").touch()
    (tmp_path / "telex" / "chat.py").write_text(text.replace('Platform("fax")', 'Platform("slack")'), encoding="utf-8")
    expected = r"^adapters\.slack\.chat and adapters\.telex\.chat both declare slack: rename or remove one of them\.$"
    with added_to(adapters, tmp_path), pytest.raises(ValueError, match=expected):
        CHATS.all()


def test_stored_place_in_a_chat_that_is_gone_can_be_read() -> None:
    stored = TypeAdapter(Place).dump_json(Place(Platform("telegraph"), "1", "2"))
    assert TypeAdapter(Place).validate_json(stored) == Place(Platform("telegraph"), "1", "2")


@pytest.mark.parametrize("section", EXISTING)
def test_kind_that_no_module_declares_is_answered_with_those_that_exist(tmp_path: Path, section: str) -> None:
    expected = rf"line 1: {section}\.0: there is no kind fax: use one of .*{EXISTING[section]}"
    with pytest.raises(ConfigurationError, match=expected):
        load_workspace(configured(tmp_path, f"{section}: [{{kind: fax}}]"))


@pytest.mark.usefixtures("fax")
@pytest.mark.parametrize("section", ["catalogues", "filing", "sources", "tools"])
def test_new_kind_is_in_the_schema(section: str) -> None:
    schema = json_schema()
    assert "fax" in schema["properties"][section]["items"]["discriminator"]["mapping"]


@pytest.mark.parametrize(
    ("kinds", "taken"),
    [
        (PUBLISHERS, "github_issue"),
        (SOURCES, "folder"),
        (CATALOGUES, "backstage"),
        (TOOLS, "code"),
        (TOOLS, "prometheus"),
    ],
)
def test_two_modules_that_claim_one_kind_are_an_error(tmp_path: Path, kinds: Kinds[Any], taken: str) -> None:
    folder = kinds.package.__name__.rpartition(".")[2]
    text = (NEW_KINDS / folder / "fax.py").read_text(encoding="utf-8")
    (tmp_path / "telex.py").write_text(text.replace('Literal["fax"]', f'Literal["{taken}"]'), encoding="utf-8")
    expected = rf"^\S+ and adapters\.{folder}\.telex both declare {taken}: rename or remove one of them\.$"
    with added_to(kinds.package, tmp_path), pytest.raises(ValueError, match=expected):
        kinds.all()
