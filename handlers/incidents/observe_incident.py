"""Query every read-only tool about an incident and its neighbouring services, concurrently and by a fixed plan."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TypeVar

import structlog

from core.model.alert import AlertStatus
from core.model.errors import ToolUnavailable
from core.model.findings import Gap, GapReason, SimilarIncident
from core.model.incident import Incident
from core.ports import (
    ANSWER_BY,
    BuildReader,
    Clock,
    DependencyReader,
    FailedBuild,
    LogReader,
    MetricReader,
    Partial,
    PartialGraph,
    TimeWindow,
    Tool,
    Toolbox,
    gap_of,
)
from core.rca.changes import placed
from core.rca.dependencies import names_of, neighbourhood, service_of, unanswering, united
from core.rca.observation_tools import PlannedCall, planned_calls
from core.rca.observations import (
    CHANGES,
    CHANGES_BACK,
    COMMITS_BACK,
    LOGS,
    LOOK_BACK,
    METRICS,
    OUTPUTS,
    SUSPECT,
    Observations,
    build_links,
    is_about_a_build,
    is_build_link,
    of_late,
    pasted_build,
    pasted_output,
    signal_window,
)
from core.rca.tool_outputs import ToolOutput
from core.triage.owner_model import IncidentHistory
from handlers.common.ports import Readers

DEADLINE = 8.0  # seconds per tool call
MAX_SERVICES = 16  # services whose logs and metrics are read
MAX_LOG_LINES = 20_000  # records read of one service
SIMILAR = 3  # similar past incidents shown
GRAPH, BUILDS = "calls between services", "builds"  # further kinds of data
MIN_SIMILARITY = 0.15  # below this, a past incident resembles this one only by chance

MAX_LINK = 200  # characters shown of a link
NO_PROJECT = "no run of a project that is configured under tools"

T = TypeVar("T")
Reading = Callable[[], Awaitable[list[T]]]  # called when asked, so that none is left unawaited if the incident ends

log = structlog.get_logger()


async def observe_incident(
    incident: Incident, readers: Readers, *, history: IncidentHistory, clock: Clock, others: Sequence[Incident] = ()
) -> Observations:
    """Read all tools and the pasted text. Tools that fail or time out are recorded as gaps.

    `others` are open incidents: what one is about is a dependency if the alerts of `incident` say that it does not answer.
    """
    now = clock.now()
    until = signal_window(incident, now).end
    calls_in, changes_in = (TimeWindow(incident.started_at - back, until) for back in (CHANGES_BACK, COMMITS_BACK))
    tools = _Tools()
    traced, changes = await asyncio.gather(
        tools.ask([(each.name, partial(_graph, each, calls_in)) for each in readers.graphs], GRAPH),
        tools.ask([(each.name, partial(each.changes, changes_in)) for each in readers.changes], CHANGES),
    )
    dependencies = united([readers.dependencies, *traced])
    names = frozenset(dependencies).union(*dependencies.values(), *(team.services for team in readers.teams))
    changes = [placed(each, names, readers.owners, readers.teams) for each in of_late(changes, incident)]
    service = service_of(incident, dependencies)
    alerts = [each for one in (incident, *others) for each in one.alerts if each.status is AlertStatus.FIRING]
    words = unanswering(incident)
    firing = {
        name: alert
        for alert in alerts
        if alert.starts_at >= incident.started_at - SUSPECT
        and (name := next((name for name in names_of(alert) if name in words), ""))
    }
    dependencies = united([dependencies, {service: tuple(firing)}]) if service else dependencies
    services = neighbourhood(service, dependencies, MAX_SERVICES) if service else []
    window = signal_window(incident, now, changes, services)
    for kind, systems in ((LOGS, readers.logs), (METRICS, readers.metrics), (CHANGES, readers.changes)):
        if not (systems or readers.toolboxes):  # a toolbox could provide it as well
            tools.note(Gap(kind, GapReason.MISSING), kind)
    logs, series, outputs, builds = await asyncio.gather(
        tools.ask(
            [
                (each.name, partial(each.lines, name, window, MAX_LOG_LINES))
                for each in readers.logs
                for name in services
            ],
            LOGS,
        ),
        tools.ask(
            [(each.name, partial(each.series, name, window)) for each in readers.metrics for name in services], METRICS
        ),
        _outputs(readers, services, window, tools),
        _builds(replace(incident, service=service), readers, window.end, tools),
    )
    for kind, systems, data in ((LOGS, readers.logs, logs), (METRICS, readers.metrics, series)):
        if services and not data:
            tools.note_silence(systems, window, kind)
    pasted, pasted_log = pasted_output(incident), pasted_build(incident)
    if pasted_log is not None:
        builds, pasted = [pasted_log, *builds], None
    service = service or next((build.service for build in builds), "")
    return Observations(
        incident=replace(incident, service=service),
        until=window.end,
        services=tuple(services),
        logs=tuple(logs),
        series=tuple(series),
        changes=tuple(changes),
        dependencies=dependencies,
        similar=similar_incidents(f"{incident.description}\n{incident.service}", history, incident),
        gaps=tuple(
            sorted(
                (replace(gap, kinds=frozenset(kinds)) for gap, kinds in tools.gaps.items()), key=lambda gap: gap.text
            )
        ),
        cut=frozenset(name for name, count in Counter(line.service for line in logs).items() if count >= MAX_LOG_LINES),
        outputs=(*([pasted] if pasted else []), *outputs),
        builds=tuple({(build.system, build.project, build.run, build.step): build for build in builds}.values()),
        firing=firing,
    )


async def _graph(reader: DependencyReader, window: TimeWindow) -> list[Mapping[str, tuple[str, ...]]]:
    graph = await reader.dependencies(window)
    return Partial([graph], graph.gaps if isinstance(graph, PartialGraph) else ())


async def _outputs(readers: Readers, services: Sequence[str], window: TimeWindow, tools: _Tools) -> list[ToolOutput]:
    """Return the outputs of every tool call that needs only a service name. Builds are read elsewhere."""
    boxes = [each for each in readers.toolboxes if not isinstance(each, BuildReader)]
    opened = await tools.ask([(each.name, partial(each.tools, services, window)) for each in boxes], OUTPUTS)

    async def called(call: PlannedCall) -> list[ToolOutput]:
        return [ToolOutput(call.tool.name, call.arguments, await call.tool.call(call.arguments))]

    return await tools.ask(
        [(call.tool.name, partial(called, call)) for call in planned_calls(opened, services)], OUTPUTS
    )


async def _builds(incident: Incident, readers: Readers, before: datetime, tools: _Tools) -> list[FailedBuild]:
    """Return the failed builds that the incident links to, and no others.

    If it links to no build, return its service's last failed one if it mentions builds.
    """
    links = build_links(incident)
    foreign = Counter[str]()  # the readers to which a link is of no project

    async def linked(reader: BuildReader, link: str) -> list[FailedBuild]:
        build = await reader.linked_failure(link)
        foreign[link] += build is None
        return [build] if build else []

    async def last(reader: BuildReader) -> list[FailedBuild]:
        build = await reader.last_failure(incident.service, before)
        return [build] if build else []

    builds = await tools.ask(
        [(reader.name, partial(linked, reader, link)) for reader in readers.builds for link in links], BUILDS
    )
    unknown = [link for link in links if is_build_link(link) and foreign[link] == len(readers.builds)]
    for link in unknown:
        tools.note(Gap(link[:MAX_LINK], GapReason.LEFT_OUT, NO_PROJECT), BUILDS)
    is_linked = bool(unknown) or any(foreign[link] < len(readers.builds) for link in links)
    if is_linked or not incident.service or not is_about_a_build(incident):
        return builds
    return await tools.ask([(reader.name, partial(last, reader)) for reader in readers.builds], BUILDS)


@dataclass(slots=True)
class _Tools:
    """Queries tools concurrently, and records those that could not be read."""

    gaps: dict[Gap, set[str]] = field(default_factory=dict[Gap, set[str]])  # with the kinds of data that they lack

    def note(self, gap: Gap, kind: str) -> None:
        self.gaps.setdefault(gap, set()).add(kind)

    def note_silence(self, readers: Sequence[LogReader | MetricReader], window: TimeWindow, kind: str) -> None:
        """Record a gap for systems that answered but have no data for the window."""
        failed = {gap.system for gap, kinds in self.gaps.items() if kind in kinds}
        span = f"{window.start:%Y-%m-%d %H:%M} to {window.end:%H:%M} UTC"
        for reader in readers:
            if reader.name not in failed:
                self.note(Gap(reader.name, GapReason.OUT_OF_WINDOW, span), kind)

    async def ask(self, questions: Sequence[tuple[str, Reading[T]]], kind: str) -> list[T]:
        answers = await asyncio.gather(*(self._answer(name, question, kind) for name, question in questions))
        return [item for answer in answers for item in answer]

    async def _answer(self, name: str, question: Reading[T], kind: str) -> list[T]:
        ANSWER_BY.set(asyncio.get_running_loop().time() + DEADLINE)
        try:
            async with asyncio.timeout(DEADLINE):
                answer = await question()
        except ToolUnavailable as error:
            self.note(gap_of(name, error), kind)
        except TimeoutError:
            self.note(Gap(name, GapReason.TIMED_OUT, f"no answer within {DEADLINE:.0f} s"), kind)
        except Exception as error:  # the others are read
            log.exception("tool_failed", tool=name)
            self.note(Gap(name, GapReason.FAILED, f"unexpected error {type(error).__name__}; see the log"), kind)
        else:
            for gap in answer.gaps if isinstance(answer, Partial) else ():
                self.note(gap, kind)
            return answer
        return []


def similar_incidents(text: str, history: IncidentHistory, incident: Incident) -> tuple[SimilarIncident, ...]:
    """Return the past incidents other than this one that a text resembles, nearest first."""
    return tuple(
        neighbour.incident.as_similar(neighbour.similarity)
        for neighbour in history.similar(text, SIMILAR, without=frozenset({incident.id}))
        if neighbour.similarity >= MIN_SIMILARITY
    )


async def offer_tools(
    toolboxes: Sequence[Toolbox], observations: Observations
) -> tuple[tuple[Tool, ...], tuple[Gap, ...]]:
    """Return the tools, unique by name, and a gap for each system that could not list its tools.

    The tools read the incident's time window.
    """
    window = TimeWindow(observations.incident.started_at - LOOK_BACK, observations.until)
    tools = _Tools()
    offered = await tools.ask(
        [(each.name, partial(each.tools, observations.services, window)) for each in toolboxes], OUTPUTS
    )
    return tuple({tool.name: tool for tool in reversed(offered)}.values())[::-1], tuple(
        sorted(tools.gaps, key=lambda gap: gap.text)
    )
