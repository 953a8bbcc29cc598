"""A package of somebody else adds kinds of things by entry points, and one that cannot be used harms nothing else."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import io
import json
import os
import runpy
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from aiohttp import ClientSession
from dbos._dbos import _get_or_create_dbos_registry
from rich.console import Console
from structlog.testing import capture_logs

from adapters import section
from adapters.chat import CHATS
from adapters.section import Registry
from bot.commands.doctor import run_doctor
from bot.config.section import CATALOGUES, FORMATS, ON_CALL, PUBLISHERS, REGISTRIES, SOURCES, TOOLS
from bot.config.settings import Settings
from bot.config.workspace import json_schema, load_workspace
from bot.server import running
from bot.wiring.application import ingest, open_core
from core.model.errors import ConfigurationError
from core.model.incident import Incident
from handlers.knowledge.ingest_knowledge import ingest_knowledge
from tests.cases import every_case
from tests.contract.source_worlds import kinds as source_kinds
from tests.fakes.monitoring_systems import systems
from tests.fakes.monitoring_systems.system import TITLE
from tests.fakes.new_kinds.alerts.fax import FORMAT
from tests.fakes.new_kinds.catalogues.fax import FaxSection as FaxCatalogue
from tests.fakes.new_kinds.chats.fax.chat import FaxSettings
from tests.fakes.new_kinds.publishers.fax import FaxSection as FaxPublisher
from tests.fakes.new_kinds.sources.fax import FaxSection as FaxSource
from tests.fakes.new_kinds.tools.fax import FaxTool
from tests.fakes.passage_index import FakeEncoderStore, FakePassageIndex
from tests.fakes.store import InMemoryStore

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "plumbline-example"
SECRET = "a secret of the job runner alone"
FAX = "tests.fakes.new_kinds"
WAYS = [
    (FORMATS, "webhooks", "alerts.fax:FORMAT", FORMAT),
    (SOURCES, "sources", "sources.fax:FaxSection", FaxSource),
    (PUBLISHERS, "publishers", "publishers.fax:FaxSection", FaxPublisher),
    (CATALOGUES, "catalogues", "catalogues.fax:FaxSection", FaxCatalogue),
    (TOOLS, "tools", "tools.fax:FaxTool", FaxTool),
    (CHATS, "chats", "chats.fax.chat:FaxSettings", FaxSettings),
]

Install = Callable[..., Path]


def distribution(folder: Path, name: str, points: Mapping[str, Mapping[str, str]]) -> None:
    """Write what an installer writes of a distribution beside its modules."""
    about = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    about.mkdir(parents=True)
    about.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [
        line
        for group, named in points.items()
        for line in (f"[{group}]", *(f"{point} = {value}" for point, value in named.items()))
    ]
    about.joinpath("entry_points.txt").write_text("\n".join(lines))


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a distribution with these modules, by name, and the entry points of each group."""
    monkeypatch.setattr(section, "installed", entry_points)
    monkeypatch.setattr(section.Registry, "_points", property(vars(section.Registry)["_points"].func))  # not kept
    before = set(sys.modules)

    def written(name: str, points: Mapping[str, Mapping[str, str]], modules: Mapping[str, str] | None = None) -> Path:
        folder = tmp_path / "site" / name
        distribution(folder, name, {f"plumbline.{group}": named for group, named in points.items()})
        for module, text in (modules or {}).items():
            folder.joinpath(f"{module}.py").write_text(text)
        monkeypatch.syspath_prepend(folder)
        return folder

    yield written
    for module in set(sys.modules) - before:
        if str(tmp_path) in (getattr(sys.modules[module], "__file__", "") or ""):
            del sys.modules[module]


@pytest.fixture(params=["by hand", pytest.param("with pip", marks=pytest.mark.external)])
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder that the example package is installed into."""
    site = tmp_path / "example"
    if request.param == "with pip":
        copy = shutil.copytree(EXAMPLE, tmp_path / "copy")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
        subprocess.run([*pip, "--target", str(site), str(copy)], check=True)
    else:
        shutil.copytree(EXAMPLE / "src", site)
        project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text("utf-8"))["project"]
        distribution(site, project["name"], project["entry-points"])
    return site


def configured(folder: Path, text: str) -> Path:
    file = folder / "plumbline.yaml"
    file.write_text(text, encoding="utf-8")
    return file


# --- the example of the documentation --------------------------------------------------------------------------------

NIGHTLY = """
channels: [{name: incidents, console: incidents}]
webhooks: {nightly: {secret_env: NIGHTLY_SECRET}}
sources: [{kind: faq, name: answers, path: faq.csv, readers: [public]}]
"""
RUN = {"job": "export", "state": "failed", "title": "The nightly export failed", "level": "critical"}


async def test_signed_webhook_of_an_installed_package_opens_an_incident_and_its_source_is_ingested(
    example: Path, install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The engine holds one instance per process, and has no public way to forget it.
    monkeypatch.setattr(_get_or_create_dbos_registry(), "instance_info_map", {})
    monkeypatch.syspath_prepend(example)
    monkeypatch.setenv("NIGHTLY_SECRET", SECRET)
    (tmp_path / "faq.csv").write_text("question,answer\nHow is the export rerun?,Run `export --again`.\n")
    variables = {"PLUMBLINE_DATA_DIR": tmp_path / "data", "PLUMBLINE_EMBEDDINGS": "none", "PLUMBLINE_PORT": 0}
    body = json.dumps(RUN).encode()
    signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    async with open_core(Settings.model_validate(variables), load_workspace(configured(tmp_path, NIGHTLY))) as core:
        report = await ingest(core)
        async with running(core) as address, asyncio.timeout(20), ClientSession() as session:
            statuses = [
                await posted(session, f"{address}webhooks/nightly", body, each) for each in (signature, signature[::-1])
            ]
            async with core.store.transaction() as transaction:
                (incident,) = await transaction.incidents.recent(10)
    assert (report.added, dict(report.failed)) == (1, {})
    assert statuses == [202, 401]
    assert isinstance(incident, Incident)
    assert (incident.title, [alert.labels for alert in incident.alerts]) == (RUN["title"], [{"job": "export"}])


async def posted(session: ClientSession, address: str, body: bytes, signature: str) -> int:
    headers = {"X-Nightly-Signature": signature, "Content-Type": "application/json"}
    async with session.post(address, data=body, headers=headers) as response:
        return response.status


async def test_suites_of_the_example_join_those_of_the_product(
    example: Path, install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process; what the next test runs in one of its own."""
    monkeypatch.setattr(systems, "SYSTEMS", systems.SYSTEMS)
    for kinds in ("LOCAL", "STRUCK"):
        monkeypatch.setattr(source_kinds, kinds, dict(getattr(source_kinds, kinds)))
    monkeypatch.syspath_prepend(example)
    runpy.run_path(str(EXAMPLE / "tests" / "plumbline_suites.py"))
    assert systems.SYSTEMS[-1].source == "nightly"
    assert systems.SYSTEMS[-1]("one").fire()["title"] == TITLE
    async with source_kinds.world("faq", tmp_path) as found:
        found.write("1", "Run it again.")
        stores = FakePassageIndex(), FakeEncoderStore()
        report = await ingest_knowledge([found.source], *stores, store=InMemoryStore())
        assert report.added == 1


@pytest.mark.external  # a process imports all that the suites need
def test_contract_suites_run_an_installed_package(example: Path) -> None:
    """The command of docs/plugins.md, with two of the suites."""
    suites = [f"tests/contract/test_{name}.py" for name in ("webhook_formats", "knowledge_source")]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:schemathesis",
    ]
    path = os.pathsep.join(map(str, (ROOT, example, EXAMPLE / "tests")))
    run = subprocess.run(
        [*command, "-p", "plumbline_suites", "-k", "nightly or faq", *suites],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    assert int(run.stdout.rsplit(" passed")[0].split()[-1]) > 15


# --- what a plugin may bring -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("registry", "group", "value", "expected"), WAYS, ids=[group for _, group, _, _ in WAYS])
def test_a_plugin_is_found_by_its_name(
    registry: Registry[object], group: str, value: str, expected: object, install: Install
) -> None:
    assert registry.named("fax") is None
    install("plumbline-fax", {group: {"fax": f"{FAX}.{value}"}})
    assert registry.named("fax") is expected
    assert registry.all()["fax"] is expected
    assert registry.faults() == {}


def test_definitions_of_a_package_are_tools_and_systems_of_people_on_call(install: Install, tmp_path: Path) -> None:
    folder = install("plumbline-tills", {"readers": {"tills": "my_readers"}, "on_call": {"bells": "my_readers"}})
    (folder / "my_readers").mkdir()
    shutil.copy(ROOT / "docs" / "examples" / "readers" / "tills.yaml", folder / "my_readers" / "tills.yaml")
    shutil.copy(ROOT / "adapters/readers/definitions/rootly.yaml", folder / "my_readers" / "bells.yaml")
    text = (
        "tools: [{kind: tills, url: 'https://tills.example', token_env: TILLS_TOKEN}]\n"
        "on_call: [{kind: bells, token_env: BELLS_TOKEN, schedules: {payments: S1}}]\n"
    )
    workspace = load_workspace(configured(tmp_path, text))
    assert [each.label for each in (*workspace.tools, *workspace.on_call)] == ["tills", "bells"]
    assert workspace.on_call[0].definition.people
    assert TOOLS.faults() == ON_CALL.faults() == {}
    assert "tills" in json_schema()["properties"]["tools"]["items"]["discriminator"]["mapping"]


@every_case("registry", REGISTRIES)
def test_everything_of_the_product_is_found_by_its_name_alone(registry: Registry[object]) -> None:
    every = registry.all()
    assert every
    assert {name: registry.named(name) for name in every} == every


def test_a_plugin_is_not_loaded_for_another_kind(install: Install, tmp_path: Path) -> None:
    value = f"{FAX}.sources.fax:FaxSection"
    modules = {"unloaded_telex": "class TelexSection: ..."}
    install("plumbline-fax", {"sources": {"fax": value, "telex": "unloaded_telex:TelexSection"}}, modules)
    text = "sources: [{kind: fax, name: faxes, path: f, readers: [public]}, {kind: folder, name: docs, path: d}]"
    assert len(load_workspace(configured(tmp_path, text)).sources) == 2
    assert "unloaded_telex" not in sys.modules


# --- those that cannot be used ---------------------------------------------------------------------------------------

BROKEN = {"broken_telex": "import a_module_that_nobody_has\n"}
CONFIGURED = {
    "webhooks": "webhooks: {telex: {secret_env: TELEX_SECRET}}",
    "sources": "sources: [{kind: telex, name: notes, path: notes}]",
    "publishers": "filing: [{kind: telex, name: Telex}]",
    "catalogues": "catalogues: [{kind: telex, path: .}]",
    "tools": "tools: [{kind: telex}]",
    "readers": "tools: [{kind: telex}]",
    "on_call": "on_call: [{kind: telex}]",
    "chats": "channels: [{name: incidents, telex: '112'}]",
}
MISSING = r"plugin plumbline-telex cannot be used: No module named 'a_module_that_nobody_has'\.$"


@pytest.mark.parametrize("group", CONFIGURED)
def test_configured_plugin_that_cannot_be_imported_is_named_with_its_line(
    group: str, install: Install, tmp_path: Path
) -> None:
    install("plumbline-telex", {group: {"telex": "broken_telex"}}, BROKEN)
    with pytest.raises(ConfigurationError, match=rf"line 1: [\w.]+: {MISSING}"):
        load_workspace(configured(tmp_path, CONFIGURED[group]))


@pytest.mark.parametrize("settings", ["{lines: 3}", "{title: $.check}", "{preset: zabbix}"])
def test_webhook_plugin_that_cannot_be_used_is_no_mapping_whatever_its_settings(
    settings: str, install: Install, tmp_path: Path
) -> None:
    install("plumbline-telex", {"webhooks": {"telex": "broken_telex"}}, BROKEN)
    with pytest.raises(ConfigurationError, match=rf"line 1: webhooks\.telex[\w.]*: {MISSING}"):
        load_workspace(configured(tmp_path, f"webhooks: {{telex: {settings}}}"))


async def test_plugins_that_are_not_configured_harm_nothing_and_the_doctor_names_them(
    install: Install, tmp_path: Path
) -> None:
    install("plumbline-telex", {group: {"telex": "broken_telex"} for group in CONFIGURED}, BROKEN)
    install("plumbline-fax", {group: {"fax": f"{FAX}.{value}"} for _, group, value, _ in WAYS})
    file = configured(tmp_path, "sources: [{kind: fax, name: faxes, path: ., readers: [public]}]")
    assert set(json_schema()["$defs"]["WebhooksSection"]["properties"]) >= {"fax", "grafana"}
    variables = {"PLUMBLINE_CONFIG": file, "PLUMBLINE_DATA_DIR": tmp_path / "data", "PLUMBLINE_EMBEDDINGS": "none"}
    said = io.StringIO()
    await run_doctor(Settings.model_validate(variables), Console(file=said, width=200))
    assert "✓ source faxes: fax" in said.getvalue()
    # Both groups of tools have one of this name.
    assert said.getvalue().count("! plugin telex: is left out") == len(REGISTRIES)
    assert said.getvalue().count("plugin plumbline-telex cannot be used: No module named") == len(REGISTRIES) - 1
    assert "both declare telex: rename or remove one of them." in said.getvalue()


async def test_start_warns_of_webhooks_and_chats_that_cannot_be_used(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_get_or_create_dbos_registry(), "instance_info_map", {})
    install("plumbline-telex", {group: {"telex": "broken_telex"} for group in ("webhooks", "chats")}, BROKEN)
    variables = {"PLUMBLINE_DATA_DIR": tmp_path, "PLUMBLINE_EMBEDDINGS": "none", "PLUMBLINE_PORT": 0}
    with capture_logs() as logs:
        async with open_core(Settings.model_validate(variables), load_workspace(None)) as core, running(core):
            pass
    reasons = [each["reason"] for each in logs if each["event"] == "plugin_left_out"]
    assert reasons == ["plugin plumbline-telex cannot be used: No module named 'a_module_that_nobody_has'"] * 2


@pytest.mark.parametrize(("registry", "group", "value", "expected"), WAYS, ids=[group for _, group, _, _ in WAYS])
def test_name_that_two_distributions_claim_is_nobodys(
    registry: Registry[object], group: str, value: str, expected: object, install: Install
) -> None:
    for name in ("plumbline-fax", "plumbline-facsimile"):
        install(name, {group: {"fax": f"{FAX}.{value}"}})
    both = r"plumbline-fa\w+ and plumbline-fa\w+ both declare fax: rename or remove one of them\.$"
    with pytest.raises(ValueError, match=both):
        registry.named("fax")
    assert expected not in registry.all().values()
    assert list(registry.faults()) == ["fax"]


@pytest.mark.parametrize(("registry", "group", "value", "_"), WAYS, ids=[group for _, group, _, _ in WAYS])
def test_name_of_the_product_stays_its_own(
    registry: Registry[object], group: str, value: str, _: object, install: Install
) -> None:
    name, own = next(iter(registry.all().items()))
    install("plumbline-fax", {group: {name: f"{FAX}.{value}"}})
    assert registry.named(name) is own
    assert registry.all()[name] is own
    expected = f"{own.__module__} and plumbline-fax both declare" if isinstance(own, type) else "and plumbline-fax both"
    assert expected in registry.faults()[name]


@pytest.mark.parametrize("value", ["alerts.fax:FORMAT", "sources.fax:FaxSection", "sources.fax:Literal"])
def test_plugin_that_is_of_another_sort_or_name_is_refused(value: str, install: Install) -> None:
    install("plumbline-fax", {"sources": {"telex": f"{FAX}.{value}"}})
    expected = rf"^plugin plumbline-fax cannot be used: {FAX}\.{value} is not telex$"
    with pytest.raises(ValueError, match=expected):
        SOURCES.named("telex")


@pytest.mark.parametrize("platform", ["console", "terminal"])
def test_a_plugin_cannot_take_the_place_of_the_local_page_or_the_terminal(platform: str, install: Install) -> None:
    text = f"from {FAX}.chats.fax.chat import *\nclass Taken(FaxSettings):\n    platform = Platform('{platform}')\n"
    install("plumbline-fax", {"chats": {platform: "taken_place:Taken"}}, {"taken_place": text})
    assert platform not in CHATS.all()
    assert list(CHATS.faults()) == [platform]
