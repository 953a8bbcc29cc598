"""One odd value in an answer costs at most the record that it stands in, and what it costs is named, in every reader.

PLUMBLINE_FUZZ_EXAMPLES says how many changed answers are read in all.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import aiohttp
import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from mcp.types import Tool as Offered
from structlog.testing import capture_logs

from adapters.catalogues.backstage import read_backstage
from adapters.http import Http, gaps_in
from adapters.readers.builds import Builds
from adapters.readers.definition import shipped
from adapters.readers.reader import Reader
from adapters.readers.values import moment
from adapters.tools.alertmanager import Alertmanager, PrometheusAlerts
from adapters.tools.kubernetes import Kubernetes, Workload
from adapters.tools.mcp_server import McpServer
from core.model.errors import NoFailedBuild, Unavailable
from core.ports import AlertState, LogLine, Toolbox
from tests.contract.backstage_entities import CATALOGUE, GROUPS
from tests.contract.publishers import PUBLISHERS, REPORT, served
from tests.contract.reader_answers import as_recorded, read_part
from tests.contract.source_worlds.kinds import REMOTE
from tests.fakes.alert_systems import INCIDENT, Systems, known_alert, rule, silence
from tests.fakes.build_worlds import World, azure, github, gitlab, jenkins
from tests.fakes.change_servers import FakeAzureDevOps, FakeGitHub, FakeGitLab, changes_of
from tests.fakes.odd_values import ODD, Change, Place, Tape, places, replaced
from tests.fakes.recorded_reader import HOUR, START, Server, reading, recording
from tests.fakes.tool_servers import FakeKubernetes, FakeToolServer, event, reached

EXAMPLES = int(os.environ.get("PLUMBLINE_FUZZ_EXAMPLES", "500"))
ODD_ONES = 4 if EXAMPLES > 500 else 1  # of the odd values, for each place of a catalogue


@dataclass(frozen=True, slots=True)
class Reading:
    """The facts that a reader returned, one a record, and what it says that it could not read."""

    facts: tuple[str, ...]
    named: tuple[str, ...] = ()


Read = Callable[[], Awaitable[Reading]]
Opened = Callable[[], AbstractAsyncContextManager[Read]]


def defined(kind: str, part: str) -> Opened:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Read]:
        recorded = recording(kind)
        server = Server(recorded.exchanges[part])
        async with reading(recorded, server) as reader:

            async def read() -> Reading:
                answer = await read_part(reader, part)
                return Reading(tuple(as_recorded(part, answer)), tuple(gap.text for gap in answer.gaps))

            yield read

    return opened


def of(name: str, opened: Callable[[], Any], facts: Callable[[Any], Awaitable[Reading]]) -> dict[str, Opened]:
    """Return a reader by its name, from what opens it and what asks it."""

    @asynccontextmanager
    async def reader() -> AsyncIterator[Read]:
        async with opened() as it:
            yield lambda: facts(it)

    return {name: reader}


def lines_of(text: str) -> Reading:
    """Return the lines of a tool's output, in which “Not read” begins one that names a gap."""
    lines = text.splitlines()
    named = tuple(line for line in lines if "Not read" in line)
    return Reading(tuple(line for line in lines if line not in named), named)


def together(readings: Sequence[Reading]) -> Reading:
    return Reading(
        tuple(fact for each in readings for fact in each.facts), tuple(name for each in readings for name in each.named)
    )


def listed(items: Sequence[Any]) -> Reading:
    return Reading(tuple(map(str, items)), tuple(gap.text for gap in gaps_in(items)))


@asynccontextmanager
async def kubernetes() -> AsyncIterator[Kubernetes]:
    fake = FakeKubernetes(
        [LogLine("api", START + timedelta(minutes=each), "ERROR", f"no stock {each}") for each in (1, 2)]
    )
    fake.events = [
        event("BackOff", "restarting", "2026-03-14T09:20:00Z"),
        event("Killing", "again", "2026-03-14T09:30:00Z"),
    ]
    ended = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-03-14T09:10:00Z"}}
    status = {"name": "main", "ready": False, "restartCount": 3, "state": {"running": {}}, "lastState": ended}
    conditions = [{"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "main"}]
    fake.statuses["api"] = {"phase": "Running", "containerStatuses": [status], "conditions": conditions}
    fake.objects = {"deployments": [{"metadata": {"name": "api"}, "spec": {"replicas": 2}}], "services": []}
    async with reached(fake) as http:
        yield Kubernetes("cluster", http, {"api": Workload(namespace="live", selector="app=api")})


async def logs_of(cluster: Kubernetes) -> Reading:
    return listed(await cluster.lines("api", HOUR, 100))


async def outputs_of(box: Toolbox) -> Reading:
    return together([lines_of(await tool.call({"service": "api"})) for tool in await box.tools(("api",), HOUR)])


def builds(world: Callable[[], World]) -> Callable[[], AbstractAsyncContextManager[tuple[World, Builds]]]:
    @asynccontextmanager
    async def opened() -> AsyncIterator[tuple[World, Builds]]:
        made = world()
        made.fake.__dict__["logs"] = {"71": "E   assert 1 == 2"}  # of GitHub, at GitHub itself
        async with reached(made.fake, base=made.base) as http:
            made.address = f"{http.url.rstrip('/')}/"
            yield made, made.builds(http)

    return opened


async def failures_of(opened: tuple[World, Builds]) -> Reading:
    world, server = opened
    last = await server.last_failure("api", HOUR.end)
    try:
        linked = await server.linked_failure(f"{world.address}{world.page}")
    except NoFailedBuild as error:
        return Reading((str(last),), (str(error),))
    found = tuple(str(each) for each in (last, linked) if each)
    return Reading(found, () if linked else ("no run of a project that is configured",))


async def runs_of(opened: tuple[World, Builds]) -> Reading:
    return await outputs_of(opened[1])


def hosted(fake: Callable[[], FakeToolServer], kind: str, project: str, base: str) -> Any:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Reader]:
        async with reached(fake(), base=base) as http:
            yield changes_of(kind, http, {"api": project})

    return opened


async def read_changes(reader: Reader) -> Reading:
    read = await reader.changes(HOUR)
    files = [f"{each.id} {name}" for each in read for name in each.files]
    return replace(listed(read), facts=(*map(str, read), *files))


@asynccontextmanager
async def alerts() -> AsyncIterator[Http]:
    systems = Systems()
    systems.alerts = [known_alert("f1"), known_alert("f2")]
    systems.silences, systems.rules = [silence(), silence()], [rule(cluster="north"), rule("Another")]
    app = web.Application()
    app.router.add_get("/{path:.*}", systems.answer)
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        yield Http("The system", str(server.make_url("/")), session)


async def alertmanager_of(http: Http) -> Reading:
    """Return what an Alertmanager says. That no alert fires may be said of a whole answer only."""
    reader = Alertmanager("Alertmanager", http, "alertmanager")
    silences = await reader.silences()
    return together([_firing(await reader.firing(INCIDENT)), listed(silences)])


async def prometheus_of(http: Http) -> Reading:
    return _firing(await PrometheusAlerts("Prometheus", http).firing(INCIDENT))


def _firing(state: AlertState) -> Reading:
    return Reading(("fires",) if state.fires else (), ("unknown",) if state.fires is None else ())


async def filed_of(opened: tuple[Any, Any]) -> Reading:
    publisher, server = opened
    if not server.items:
        await publisher.file(REPORT)
    found = await publisher.find(REPORT)
    return Reading((f"{found.key} {found.url}",) if found else ())


@asynccontextmanager
async def source(kind: str) -> AsyncIterator[Any]:
    async with REMOTE[kind]() as found:
        for key in "123":
            found.write(key, f"The word of {key} is heliotrope{key}.")
        yield found.source


async def documents_of(read: Any) -> Reading:
    with capture_logs() as logs:
        parts = [part async for part in read.changes("", frozenset())]
    documents = [
        f"{each.id} {each.title} {each.text} {sorted(each.readers)}" for part in parts for each in part.documents
    ]
    named = (str(each) for part in parts for each in (*part.left_out, *(log for log in logs if "error" in log)))
    return Reading(tuple(documents), tuple(named))


MCP_TOOL = {
    "name": "lines",
    "annotations": {"readOnlyHint": True},
    "inputSchema": {
        "type": "object",
        "required": ["service", "count"],
        "properties": {"service": {"type": "string", "enum": ["api", "web"]}, "count": {"type": "integer"}},
    },
}
OTHER_TOOL = {"name": "other", "annotations": {"readOnlyHint": True}, "inputSchema": {"type": "object"}}
READERS: dict[str, Opened] = {
    **{f"{kind} {part}": defined(kind, part) for kind in sorted(shipped()) for part in recording(kind).exchanges},
    **of("kubernetes logs", kubernetes, logs_of),
    **of("kubernetes tools", kubernetes, outputs_of),
    **{
        name: reader
        for world in (github, gitlab, jenkins, azure)
        for name, reader in [
            *of(f"{world.__name__} failures", builds(world), failures_of).items(),
            *of(f"{world.__name__} runs", builds(world), runs_of).items(),
        ]
    },
    **of("github changes", hosted(FakeGitHub, "github_actions", "acme/shop", ""), read_changes),
    **of("gitlab changes", hosted(FakeGitLab, "gitlab_ci", "acme/shop", ""), read_changes),
    **of("azure changes", hosted(FakeAzureDevOps, "azure_devops", "Shop/12", "/acme"), read_changes),
    **of("alertmanager", alerts, alertmanager_of),
    **of("prometheus alerts", alerts, prometheus_of),
    **{
        name: reader
        for kind in PUBLISHERS
        for name, reader in of(f"publisher {kind}", partial(served, kind), filed_of).items()
    },
    **{
        name: reader
        for kind in REMOTE
        if kind != "slack"  # whose library sends its requests itself
        for name, reader in of(f"source {kind}", partial(source, kind), documents_of).items()
    },
}


ENDS = frozenset(
    "more next nextToken NextToken after cursor nextPageKey nextLink next_cursor continue parentSpanId".split()
)
"""The names of places that are empty where nothing follows, or contains."""
UNKNOWN = frozenset(
    "result conclusion status terminated description body page meta file log canvasLayout content".split()
)
"""The names of places where a system writes null while there is nothing yet."""


def is_time(value: Any) -> bool:
    try:
        moment(value)
    except ValueError:
        return False
    return not str(value).isdecimal() or int(value) > 10**9


def is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return not isinstance(value, bool)


def is_finite(value: Any) -> bool:
    return is_number(value) and math.isfinite(float(value))


def may_mean_less(change: Change) -> bool:
    """Return whether the changed answer is as good as the one before, but has less in it: a record of another time, a page
    without a next one.
    """
    name = str(change.place[-1]).removeprefix("@odata.") if change.place else ""
    if (not change.place and isinstance(change.odd, dict)) or name == "location":  # of files, perhaps on another server
        return True
    if change.was is None or (name in ENDS and not change.odd):
        return True
    if change.odd is None and (name in UNKNOWN or not name):
        return True
    if is_number(change.was) and not is_finite(change.odd):
        return change.odd is None or is_number(change.odd)  # a sample without a value
    if isinstance(change.was, list) and isinstance(change.odd, list | None):
        return True
    if isinstance(change.was, str) and isinstance(change.odd, str):
        return not is_time(change.was) or is_time(change.odd)
    return type(change.was) is type(change.odd)


async def outcome(read: Read) -> Reading:
    try:
        return await read()
    except Unavailable as error:
        return Reading((), (str(error),))


@pytest.mark.parametrize("name", READERS)
async def test_an_odd_value_is_kept_or_named_and_costs_no_other_record(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = Tape()
    tape.install(monkeypatch)
    async with READERS[name]() as read:
        before = await read()
        assert before.facts
        tape.replay()
        assert await read() == before, "the tape plays what was recorded"
        changes = list(tape.changes())
        rng = random.Random(f"{name} {EXAMPLES}")
        for change in rng.sample(changes, min(len(changes), max(1, EXAMPLES // len(READERS)))):
            tape.replay(change)
            after = await outcome(read)
            is_lost = len(after.facts) < len(before.facts)
            assert not is_lost or after.named or may_mean_less(change), f"{change} was lost silently: {after}"


@pytest.mark.parametrize("place", [place for place, _ in places(MCP_TOOL)], ids=str)
async def test_odd_value_in_a_tool_of_an_mcp_server_costs_at_most_that_tool(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for odd in ODD:
        with contextlib.suppress(ValueError):  # the library refuses it, which is a failure of the protocol
            offered = [Offered.model_validate(replaced(MCP_TOOL, place, odd)), Offered.model_validate(OTHER_TOOL)]

            async def listed_tools(_: McpServer, offered: list[Offered] = offered) -> list[Offered]:
                return offered

            monkeypatch.setattr(McpServer, "_offered", listed_tools)
            tools = await McpServer("ops", "http://ops.example", {"lines": "", "other": ""}).tools(("api",), HOUR)
            assert "ops_other" in {tool.name for tool in tools}


async def test_odd_value_in_an_entity_of_a_catalogue_costs_at_most_that_entity() -> None:
    documents = [*yaml.safe_load_all(CATALOGUE), *yaml.safe_load_all(GROUPS)]
    name = PurePosixPath("catalog-info.yaml")
    for place, _ in places(documents):
        if not place:
            continue
        for odd in random.Random(str(place)).sample(ODD, ODD_ONES):
            changed = replaced(documents, place, odd)
            texts = {name: "\n---\n".join(map(json.dumps, changed))}

            class Files:
                async def read(self, wanted: Callable[[PurePosixPath], bool], texts: Any = texts) -> Any:
                    return texts if wanted(name) else {}

            with capture_logs() as logs:
                catalogue = await read_backstage(Files())
            named = {service for team in catalogue.teams for service in team.services}
            assert len(named) >= 3 or any("left_out" in str(log["event"]) for log in logs), (place, odd)
