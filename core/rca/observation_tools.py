"""Tools with a service as their only argument (RCAgent, section 3.2.1), including tools for data that was already read.

That data is from before the end of the observed window, deduplicated, and without log messages below warnings.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice, product

from core.model.findings import EvidenceKind
from core.model.log_levels import level_named
from core.ports import Tool, ToolParameter
from core.rca.build_log import plain
from core.rca.dependencies import callers
from core.rca.failing_lines import NO_HISTORY, end_of, failing_lines
from core.rca.incident_signals import IncidentSignals
from core.rca.log_lines import frames, grouped, quote_of
from core.rca.observations import CHANGES, LOGS, METRICS, UNREAD, Observations
from core.rca.signals import TROUBLE

MAX_ANSWER = 200_000  # characters of one answer
MAX_CALLS = 24  # of a fixed plan
MAX_COMBINED = 1_000  # combinations of parameter values of one tool
MAX_CHOICES = 4  # values of a parameter that is not about services
SERVICE_NAMES = frozenset({"service", "service_name", "app", "application", "component", "workload", "deployment"})
MAX_LISTED = 40  # log messages of a service, and changes
MAX_FAILING = 60  # lines that explain a failed build
MAX_END = 4_000  # characters of the end of its log
MAX_FRAMES = 8  # functions named of one stack trace
EVERY_SERVICE = "every service"
READ_LOGS, READ_METRICS, LIST_CHANGES, LIST_DEPENDENCIES = (
    "read_logs",
    "read_metrics",
    "list_changes",
    "list_dependencies",
)
PAST_INCIDENTS, SEARCH_DOCUMENTS = "past_incidents", "search_documents"
ADVICE = frozenset({PAST_INCIDENTS, SEARCH_DOCUMENTS})  # no evidence of the present incident; a solution may follow it


@dataclass(frozen=True, slots=True)
class ServiceTool:
    """A tool of an external system. `ask` receives one of the services, and may raise ToolUnavailable."""

    name: str
    description: str
    services: tuple[str, ...]
    ask: Callable[[str], Awaitable[str]]

    @property
    def parameters(self) -> tuple[ToolParameter, ...]:
        return (ToolParameter("service", "the name of a service", self.services),)

    async def call(self, arguments: Mapping[str, str]) -> str:
        return (await self.ask(arguments["service"]))[:MAX_ANSWER]


@dataclass(frozen=True, slots=True)
class ObservationTool:
    """A tool whose answers are already known."""

    name: str
    description: str
    parameters: tuple[ToolParameter, ...]
    answer: Callable[[Mapping[str, str]], str]

    async def call(self, arguments: Mapping[str, str]) -> str:
        return self.answer(arguments)


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call of a fixed plan. `service` is the service in its arguments; empty if there is none."""

    tool: Tool
    arguments: Mapping[str, str]
    service: str


def planned_calls(tools: Sequence[Tool], services: Sequence[str]) -> list[PlannedCall]:
    """Return the calls of a fixed plan: those whose arguments are known from the incident.

    There are at most MAX_CALLS, in the order of `services`. Tools that need other arguments are left out.
    """
    calls: list[tuple[int, PlannedCall]] = []
    for tool in tools:
        wanted = {parameter.name: _values(parameter, services) for parameter in tool.parameters}
        for values in islice(product(*wanted.values()), MAX_COMBINED):
            about = next((value for value in values if value in services), "")
            call = PlannedCall(tool, dict(zip(wanted, values, strict=True)), about)
            calls.append((services.index(about) if about else 0, call))
    return [call for _, call in sorted(calls, key=lambda each: each[0])[:MAX_CALLS]]


def _values(parameter: ToolParameter, services: Sequence[str]) -> tuple[str, ...]:
    """Return the values to try for a parameter; empty if they cannot be known."""
    if parameter.snapshot:
        return ()
    if not parameter.choices:
        return tuple(services) if parameter.name.lower() in SERVICE_NAMES else ()
    about = tuple(service for service in services if service in parameter.choices)
    return about or (parameter.choices if len(parameter.choices) <= MAX_CHOICES else ())


def observation_tools(observations: Observations, incident_signals: IncidentSignals) -> tuple[Tool, ...]:
    """Return tools for the logs, metrics, changes, service graph, similar incidents and failed builds read so far."""
    service = ToolParameter("service", "the name of a service", observations.services)
    changed = tuple(dict.fromkeys(name for change in observations.changes for name in change.touched))
    about_services = (
        ObservationTool(
            READ_LOGS,
            "Warnings and errors that a service logged around the incident, each message once with its count.",
            (service,),
            lambda arguments: _with_gaps(_logs(observations, arguments["service"]), LOGS, observations),
        ),
        ObservationTool(
            "read_whole_log",
            "Every record that was read of a service's log around the incident, of all levels, for an expert.",
            (service,),
            lambda arguments: _whole_log(observations, arguments["service"]),
        ),
        ObservationTool(
            READ_METRICS,
            "The metrics of a service that moved, since when and how far.",
            (service,),
            lambda arguments: _with_gaps(
                _metrics(observations, incident_signals, arguments["service"]), METRICS, observations
            ),
        ),
        ObservationTool(
            LIST_DEPENDENCIES,
            "Which services a service calls, and which call it.",
            (service,),
            lambda arguments: _dependencies(observations.dependencies, arguments["service"]),
        ),
    )
    about_all = (
        ObservationTool(
            LIST_CHANGES,
            "Deployments, configuration, flags and migrations before the incident, the latest first.",
            (ToolParameter("service", "the name of a service, or all of them", (EVERY_SERVICE, *changed)),),
            lambda arguments: _with_gaps(_changes(observations, arguments["service"]), CHANGES, observations),
        ),
        ObservationTool(
            PAST_INCIDENTS,
            "Similar incidents of the past, their root causes and how they were mended.",
            (),
            lambda _: _past(observations),
        ),
    )
    failed = ObservationTool(
        "read_failed_build",
        "The build that failed: the lines of its log that explain it, and the last lines.",
        (),
        lambda _: _builds(observations),
    )
    return (
        *(about_services if observations.services else ()),
        *about_all,
        *((failed,) if observations.builds else ()),
    )


def _with_gaps(answer: str, kind: str, observations: Observations) -> str:
    """Return an answer with a line for each thing that a kind of data lacks."""
    return "\n".join([answer, *(f"{UNREAD}{text}" for text in observations.unread(kind))])


def _builds(observations: Observations) -> str:
    return "\n\n".join(
        f"Run {build.run} of {build.project}, {build.step}:\n"
        + (f"It {end.end}: {end.text}\n" if (end := end_of(build, NO_HISTORY)) else "")
        + plain("\n".join(line.text for line in failing_lines(build.log)[:MAX_FAILING]))
        + f"\nThe end of the log:\n{plain(build.log[-MAX_END:])}"
        for build in observations.builds
    )


def _logs(observations: Observations, service: str) -> str:
    lines = [line for line in observations.logs if line.service == service and level_named(line.level) in TROUBLE]
    templates = grouped(sorted(lines, key=lambda line: line.at))
    templates.sort(key=lambda each: (-each.lines[0].at.timestamp(), len(each.lines)))  # the newest and rarest
    entries: list[str] = []
    for template in templates[:MAX_LISTED]:
        first, last = template.lines[0], template.lines[-1]
        # The functions of a stack trace are names that the code expert can be asked for.
        symbols = [frame.symbol for frame in frames(first.text) if frame.symbol][:MAX_FRAMES]
        stack = f" (stack: {', '.join(symbols)})" if symbols else ""
        count = f"{_clock(first.at)} to {_clock(last.at)}, {len(template.lines)} times"
        entries.append(f"{count}, {template.level}: {quote_of(first.text)}{stack}")
    if not any(line.service == service for line in observations.logs):
        return f"No log of {service} was read."
    return "\n".join(entries) or f"No warning or error in the log of {service}, as far as it was read."


def _whole_log(observations: Observations, service: str) -> str:
    lines = sorted((line for line in observations.logs if line.service == service), key=lambda line: line.at)
    return (
        "\n".join(f"{_clock(line.at)} {line.level} {line.text}" for line in lines)[-MAX_ANSWER:]
        or f"No log of {service} was read."
    )


def _metrics(observations: Observations, incident_signals: IncidentSignals, service: str) -> str:
    names = sorted({series.metric for series in observations.series if series.service == service})
    moved = [
        signal for signal in incident_signals.by_service.get(service, ()) if signal.evidence.kind is EvidenceKind.METRIC
    ]
    entries = [f"{_clock(signal.since)}: {signal.what}" for signal in sorted(moved, key=lambda signal: signal.since)]
    nothing = f"None of the metrics of {service} moved: {', '.join(names)}."
    return "\n".join(entries) or (nothing if names else f"No metrics of {service} were read.")


def _changes(observations: Observations, service: str) -> str:
    wanted = [change for change in observations.changes if service in (EVERY_SERVICE, *change.touched)]
    entries = [
        f"{_clock(change.at)}: {change.name} of {', '.join(change.touched) or 'no service that it names'}"
        f" by {change.author or 'unknown'}: "
        + ". ".join(part for part in (change.title, " ".join(change.detail.split())) if part)
        for change in sorted(wanted, key=lambda change: change.at, reverse=True)[:MAX_LISTED]
    ]
    return "\n".join(entries) or "No change was found."


def _dependencies(dependencies: Mapping[str, tuple[str, ...]], service: str) -> str:
    called = ", ".join(dependencies.get(service, ())) or "nothing that is known"
    calling = ", ".join(callers(service, dependencies)) or "nothing that is known"
    return f"{service} calls {called}. It is called by {calling}."


def _past(observations: Observations) -> str:
    return (
        "\n".join(
            f"{past.id} ({past.similarity:.0%} alike): {past.title}. Cause: {past.root_cause}. Mended by: {past.fix}."
            for past in observations.similar
        )
        or "No past incident is like this one."
    )


def _clock(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
