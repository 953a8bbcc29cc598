"""Tools that take a service and nothing else (RCAgent, section 3.2.1), and what was read around an incident as such tools.

What was read is from before the end of the observed window, deduplicated, and without log messages below warnings.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice, product

from core.ports import Change, Tool, ToolParameter
from core.rca.build_log import plain
from core.rca.dependencies import callers
from core.rca.failing_lines import failing_lines
from core.rca.log_templates import Template, grouped, quote_of
from core.rca.observations import Observations
from core.rca.scene import Scene
from core.rca.signals import TROUBLE
from core.rca.stack_traces import frames

MAX_ANSWER = 200_000  # characters of one answer


@dataclass(frozen=True, slots=True)
class ServiceTool:
    """`ask` gets one of the services and may raise ToolUnavailable."""

    name: str
    description: str
    services: tuple[str, ...]
    ask: Callable[[str], Awaitable[str]]

    @property
    def parameters(self) -> tuple[ToolParameter, ...]:
        return (ToolParameter("service", "the name of a service", self.services),)

    async def call(self, arguments: Mapping[str, str]) -> str:
        return (await self.ask(arguments["service"]))[:MAX_ANSWER]


MAX_CALLS = 24
MAX_COMBINED = 1_000  # values of all parameters of one tool that are put together
MAX_CHOICES = 4  # values of a parameter that has nothing to do with services
SERVICE_NAMES = frozenset({"service", "service_name", "app", "application", "component", "workload", "deployment"})


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """`service` is the one that it asks about, empty if it asks about none by name."""

    tool: Tool
    arguments: Mapping[str, str]
    service: str


def planned_calls(tools: Sequence[Tool], services: Sequence[str]) -> list[PlannedCall]:
    """At most MAX_CALLS calls, those about the first of the `services` first; of a tool that wants to know more, none."""
    found: list[tuple[int, PlannedCall]] = []
    for tool in tools:
        wanted = {parameter.name: _values(parameter, services) for parameter in tool.parameters}
        for values in islice(product(*wanted.values()), MAX_COMBINED):
            arguments = dict(zip(wanted, values, strict=True))
            about = next((value for value in values if value in services), "")
            found.append((services.index(about) if about else 0, PlannedCall(tool, arguments, about)))
    return [call for _, call in sorted(found, key=lambda each: each[0])[:MAX_CALLS]]


def _values(parameter: ToolParameter, services: Sequence[str]) -> tuple[str, ...]:
    """What a parameter is tried with; nothing where it cannot be known."""
    if parameter.snapshot:
        return ()
    if not parameter.choices:
        return tuple(services) if parameter.name.lower() in SERVICE_NAMES else ()
    about = tuple(service for service in services if service in parameter.choices)
    if about:
        return about
    return parameter.choices if len(parameter.choices) <= MAX_CHOICES else ()


MAX_TEMPLATES = 40  # log messages of a service that are listed
MAX_CHANGES = 40
MAX_FAILING = 60  # lines that explain a failed build
MAX_END = 4_000  # characters of the end of its log
MAX_FRAMES = 8  # functions of one stack trace that are named
EVERY_SERVICE = "every service"


@dataclass(frozen=True, slots=True)
class ObservationTool:
    """A tool whose answers are already known."""

    name: str
    description: str
    parameters: tuple[ToolParameter, ...]
    answer: Callable[[Mapping[str, str]], str]

    async def call(self, arguments: Mapping[str, str]) -> str:
        return self.answer(arguments)


def observation_tools(observations: Observations, scene: Scene) -> tuple[Tool, ...]:
    """Logs, metrics, changes, the service graph and similar incidents; none for what there is nothing of."""
    service = ToolParameter("service", "the name of a service", observations.services)
    changed = tuple(dict.fromkeys(name for change in observations.changes for name in change.touched))
    tools = (
        ObservationTool(
            "read_logs",
            "Warnings and errors that a service logged around the incident, each message once with its count.",
            (service,),
            lambda arguments: _logs(observations, arguments["service"]),
        ),
        ObservationTool(
            "read_metrics",
            "The metrics of a service that moved, since when and how far.",
            (service,),
            lambda arguments: _metrics(observations, scene, arguments["service"]),
        ),
        ObservationTool(
            "list_changes",
            "Deployments, configuration, flags and migrations before the incident, the latest first.",
            (ToolParameter("service", "the name of a service, or all of them", (EVERY_SERVICE, *changed)),),
            lambda arguments: _changes(observations.changes, arguments["service"]),
        ),
        ObservationTool(
            "list_dependencies",
            "Which services a service calls, and which call it.",
            (service,),
            lambda arguments: _dependencies(observations.dependencies, arguments["service"]),
        ),
        ObservationTool(
            "past_incidents",
            "Similar incidents of the past, their root causes and how they were mended.",
            (),
            lambda _: _past(observations),
        ),
    )
    known = tools if observations.services else tools[2:3] + tools[4:]
    if not observations.builds:
        return known
    failed = ObservationTool(
        "read_failed_build",
        "The build that failed: the lines of its log that explain it, and the last lines.",
        (),
        lambda _: _builds(observations),
    )
    return (*known, failed)


def _builds(observations: Observations) -> str:
    return "\n\n".join(
        f"Run {build.run} of {build.project}, {build.step}:\n"
        + plain("\n".join(line.text for line in failing_lines(build.log)[:MAX_FAILING]))
        + f"\nThe end of the log:\n{plain(build.log[-MAX_END:])}"
        for build in observations.builds
    )


def _logs(observations: Observations, service: str) -> str:
    lines = [line for line in observations.logs if line.service == service and line.level.upper() in TROUBLE]
    templates = grouped(sorted(lines, key=lambda line: line.at))
    shown = sorted(templates, key=_newest_and_rarest)[:MAX_TEMPLATES]
    return _listed(
        (
            f"{_clock(template.lines[0].at)} to {_clock(template.lines[-1].at)}, {len(template.lines)} times, "
            f"{template.level}: {quote_of(template.lines[0].text)}{_stack(template.lines[0].text)}"
            for template in shown
        ),
        f"No warning or error in the log of {service}.",
    )


def _stack(text: str) -> str:
    """The functions of a stack trace: names that the code expert can be asked for."""
    named = [frame.symbol for frame in frames(text) if frame.symbol][:MAX_FRAMES]
    return f" (stack: {', '.join(named)})" if named else ""


def _newest_and_rarest(template: Template) -> tuple[float, int]:
    return -template.lines[0].at.timestamp(), len(template.lines)


def _metrics(observations: Observations, scene: Scene, service: str) -> str:
    known = {series.metric for series in observations.series if series.service == service}
    moved = [signal for signal in scene.signals.get(service, ()) if signal.evidence.kind == "metric"]
    return _listed(
        (f"{_clock(signal.since)}: {signal.what}" for signal in sorted(moved, key=lambda signal: signal.since)),
        f"None of the metrics of {service} moved: {', '.join(sorted(known))}."
        if known
        else f"No metrics of {service}.",
    )


def _changes(changes: Iterable[Change], service: str) -> str:
    wanted = [change for change in changes if service in (EVERY_SERVICE, *change.touched)]
    latest = sorted(wanted, key=lambda change: change.at, reverse=True)[:MAX_CHANGES]
    return _listed(
        (
            f"{_clock(change.at)}: {change.kind} {change.id} of {', '.join(change.touched) or 'no service that it names'} by {change.author or 'unknown'}: "
            f"{change.title}{'. ' + ' '.join(change.detail.split()) if change.detail else ''}"
            for change in latest
        ),
        "No change was found.",
    )


def _dependencies(dependencies: Mapping[str, tuple[str, ...]], service: str) -> str:
    called = ", ".join(dependencies.get(service, ())) or "nothing that is known"
    calling = ", ".join(callers(service, dependencies)) or "nothing that is known"
    return f"{service} calls {called}. It is called by {calling}."


def _past(observations: Observations) -> str:
    return _listed(
        (
            f"{past.id} ({past.similarity:.0%} alike): {past.title}. Cause: {past.root_cause}. Mended by: {past.fix}."
            for past in observations.similar
        ),
        "No past incident is like this one.",
    )


def _listed(lines: Iterable[str], nothing: str) -> str:
    return "\n".join(lines) or nothing


def _clock(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
