"""The five ways in: the product's readers, outputs of tools as text and as JSON, and text pasted with or without prompts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from aiohttp import web

from adapters.tools.kubernetes import Kubernetes, Workload
from core.confidence.calibrator import PROBABLE, badge_for
from core.incidents.folding import open_from
from core.knowledge.redactor import without_redaction
from core.model.alert import Alert, AlertDelivery, AlertStatus, Severity
from core.model.badge import Strength
from core.model.conversation import Audience, Person, Place, Platform, Question
from core.model.findings import Explanation
from core.model.log_levels import level_of
from core.ports import Change, LogLine, Series, TimeWindow
from core.rca.explain import explain
from core.rca.observations import Observations
from core.triage.owner_model import IncidentHistory
from handlers.common.ports import Readers
from handlers.incidents.investigate_incident import incident_from
from handlers.incidents.observe_incident import observe_incident
from tests.benchmarks.rca_engines import observed
from tests.fakes.clock import FakeClock
from tests.fakes.tool_servers import FakeToolServer, reached
from tests.worlds.forms import NOW, line_of, outputs, pasted, plural, question, stamp
from tests.worlds.world import T0, World

WAYS = ("readers", "pasted", "prompts", "text", "json")
PLACE = Place(Platform.CONSOLE, "incidents")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the product says of a world: the stated cause, empty for none; the first three with their quotes."""

    cause: str
    strong: bool
    among: str
    explanation: Explanation


class WorldServer(FakeToolServer):
    """The API server of a world."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/{path:.+}", self._get)]

    async def _get(self, request: web.Request) -> web.Response:
        parts = request.match_info["path"].split("/")
        if parts[-1] == "log":
            return self._log(request, parts[-2])
        items = [each for each in self.world.objects if plural(each["kind"]) == parts[-1]]
        for pair in filter(None, request.query.get("labelSelector", "").split(",")):
            key, _, value = pair.partition("=")
            items = [each for each in items if each["metadata"].get("labels", {}).get(key) == value]
        return web.json_response({"metadata": {}, "items": items})

    def _log(self, request: web.Request, pod: str) -> web.Response:
        logs = self.world.previous_logs if request.query.get("previous") == "true" else self.world.pod_logs
        rows = logs.get((pod, request.query["container"]), [])
        since = datetime.fromisoformat(request.query["sinceTime"])
        shown = [
            f"{stamp(at)} {line}"
            for at, level, text in rows
            if T0 + timedelta(seconds=at) >= since
            for line in line_of(level, text).splitlines()
        ]
        return web.Response(text="\n".join(shown))


@dataclass(frozen=True, slots=True)
class _Files:
    """The logs, metrics and changes of a world that no cluster has."""

    world: World
    name: str = "files"

    async def lines(self, service: str, window: TimeWindow, limit: int) -> list[LogLine]:
        rows = [(T0 + timedelta(seconds=at), level, text) for at, level, text in self.world.logs.get(service, ())]
        return [
            LogLine(service, at, level_of({"level": level}, text), text)
            for at, level, text in rows
            if window.start <= at < window.end
        ][-limit:]

    async def series(self, service: str, window: TimeWindow) -> list[Series]:
        times = tuple(T0 + timedelta(minutes=minute) for minute in range(-120, 3))
        return [
            Series(
                service,
                metric,
                tuple(at for at in times if window.start <= at < window.end),
                tuple(value for at, value in zip(times, values, strict=True) if window.start <= at < window.end),
            )
            for metric, values in self.world.metrics.get(service, {}).items()
        ]

    async def changes(self, window: TimeWindow) -> list[Change]:
        return [
            Change(
                each["id"],
                at,
                each["kind"],
                each["service"],
                each["author"],
                each["title"],
                each["detail"],
                tuple(each["files"]),
                diff=each["diff"],
            )
            for each in self.world.changes
            if window.start <= (at := datetime.fromisoformat(each["at"])) < window.end
        ]


async def observations_of(world: World, way: str) -> Observations:
    """Return what the product reads of a world on one of the WAYS."""
    if way in ("text", "json"):
        return observed(question(world), outputs(world, way), sorted(world.apps))
    if way in ("pasted", "prompts"):
        asked = Question(
            "q", pasted(world, prompts=way == "prompts"), Person(Platform.CONSOLE, "dana"), PLACE, Audience(), NOW
        )
        services = frozenset({world.service, world.caller, world.other})
        return await observe_incident(
            incident_from(asked, services, without_redaction),
            Readers(dependencies=world.dependencies),
            history=IncidentHistory(()),
            clock=FakeClock(NOW),
        )
    return await _read(world)


async def _read(world: World) -> Observations:
    alert = Alert(
        "a",
        world.alert["name"],
        AlertStatus.FIRING,
        Severity.CRITICAL,
        T0,
        service=world.service,
        summary=world.alert["summary"],
        description=world.alert["description"],
    )
    incident = open_from(AlertDelivery("a", "alertmanager", "a", (alert,), T0), "a", PLACE)
    files = _Files(world)
    async with reached(WorldServer(world)) as http:
        workloads = {
            name: Workload(namespace=world.namespace, selector=selector) for name, selector in world.apps.items()
        }
        cluster = [Kubernetes("kubernetes", http, workloads)] if world.objects else []
        readers = Readers(
            logs=[*cluster, *([files] if world.logs else [])],
            metrics=[files] if world.metrics else [],
            changes=[files],
            dependencies=world.dependencies,
            toolboxes=cluster,
        )
        return await observe_incident(incident, readers, history=IncidentHistory(()), clock=FakeClock(NOW))


def verdict_on(observations: Observations) -> Verdict:
    explanation, evaluation = explain(observations)
    first = explanation.cause
    strong = evaluation is not None and badge_for(evaluation, None, scale=PROBABLE).strength is Strength.STRONG
    among = "\n".join(
        [
            each.cause + "\n" + "\n".join(one.quote[:300] for one in each.evidence[:3])
            for each in explanation.hypotheses[:3]
        ]
    )
    return Verdict(first.cause if first else "", strong, among, explanation)


def verdict(world: World, way: str) -> Verdict:
    return verdict_on(asyncio.run(observations_of(world, way)))


def matches(patterns: Sequence[str], text: str) -> bool:
    return all(re.search(pattern, text, re.IGNORECASE | re.DOTALL) for pattern in patterns)


def is_right(world: World, stated: str) -> bool:
    """Return whether a stated cause names the fault of a world, and nothing that it must not."""
    truth = world.truth
    return truth is not None and matches(truth.must, stated) and not any(matches((one,), stated) for one in truth.never)


def applies(world: World, way: str) -> bool:
    """Return whether a way shows anything of a world."""
    if world.truth and world.truth.shown_by and way not in world.truth.shown_by:
        return False
    return way == "readers" or bool(world.objects) or (way != "json" and bool(world.logs))


Rates = Mapping[str, Any]
