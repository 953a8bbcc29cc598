"""Ports of monitoring, code and build systems, which investigations read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar, runtime_checkable

from core.model.errors import NoFailedBuild, ToolRefused, ToolUnavailable
from core.model.findings import Gap, GapReason, change_name
from core.model.incident import Incident
from core.model.silences import Silence

T = TypeVar("T")

ANSWER_BY: ContextVar[float] = ContextVar("answer_by", default=math.inf)
"""The event loop's time by which a reader returns what it has read: what it returns later is lost."""


class Partial(list[T]):
    """The items that a reader could read, and a gap for each part that it could not."""

    def __init__(self, items: Iterable[T] = (), gaps: Iterable[Gap] = ()) -> None:
        super().__init__(items)
        self.gaps = tuple(gaps)


class PartialGraph(dict[str, tuple[str, ...]]):
    """The services that each caller called, and a gap for each part of the traces that could not be read."""

    def __init__(self, calls: Mapping[str, tuple[str, ...]], gaps: Iterable[Gap] = ()) -> None:
        super().__init__(calls)
        self.gaps = tuple(gaps)


def gap_of(tool: str, error: ToolUnavailable) -> Gap:
    """Return the gap that an error leaves."""
    if isinstance(error, ToolRefused):
        reason = GapReason.REFUSED
    elif isinstance(error, NoFailedBuild):
        reason = GapReason.NO_FAILURE
    else:
        reason = GapReason.TIMED_OUT if isinstance(error.__cause__, TimeoutError) else GapReason.FAILED
    return Gap(tool, reason, str(error).rstrip("."))


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A time span from `start` (inclusive) to `end` (exclusive), both with a time zone."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class LogLine:
    """A log record. `text` may have several lines (a stack trace). Untrusted."""

    service: str
    at: datetime
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Series:
    """A metric over time: `values[i]` was measured at `times[i]` (ascending). Missing values are NaN.

    `is_counter` is None where the system does not tell whether it only grows, whatever its name.
    """

    service: str
    metric: str
    times: tuple[datetime, ...]
    values: tuple[float, ...]
    is_counter: bool | None = None


COMMITS = ("commit", "merge", "pullrequest")  # beginnings of words in the kinds of changes
DEPLOYMENTS = ("deploy", "release", "rollout", "rollback", "promot")  # in the kinds of changes


@dataclass(frozen=True, slots=True)
class Change:
    """A change: a commit, deployment, configuration, flag or migration. Untrusted.

    It affects `service` and `services`, or nothing that is named. `revision` is its commit, or the one that it deploys;
    a deployment of several lists all of them in `commits`. `diff` is a unified diff, possibly truncated.
    """

    id: str
    at: datetime
    kind: str
    service: str
    author: str
    title: str
    detail: str = ""
    files: tuple[str, ...] = ()
    url: str = ""
    services: tuple[str, ...] = ()
    revision: str = ""
    commits: tuple[str, ...] = ()
    diff: str = ""

    @property
    def name(self) -> str:
        return change_name(self.kind, self.id)

    @property
    def touched(self) -> tuple[str, ...]:
        """Return every affected service once."""
        return tuple(dict.fromkeys(each for each in (self.service, *self.services) if each))

    @property
    def is_deployment(self) -> bool:
        """Return whether it ships commits."""
        return any(name in "".join(self._kind_words) for name in DEPLOYMENTS)

    @property
    def is_commit(self) -> bool:
        """Return whether it takes effect only once it is deployed."""
        words = self._kind_words
        begun = ("".join(words[start:]) for start in range(len(words)))
        return not self.is_deployment and (words == ["code"] or any(each.startswith(COMMITS) for each in begun))

    @property
    def _kind_words(self) -> list[str]:
        return "".join(sign if sign.isalpha() else " " for sign in self.kind.lower()).split()


class NamedTool(Protocol):
    """A system with the name by which people know it."""

    @property
    def name(self) -> str: ...


class LogReader(NamedTool, Protocol):
    """Reads logs. Returns Partial if some could not be read. Raises ToolUnavailable if none could."""

    async def lines(self, service: str, window: TimeWindow, limit: int) -> list[LogLine]:
        """Return the last `limit` records of a service within the window, oldest first; none for an unknown service."""
        ...


class MetricReader(NamedTool, Protocol):
    """Reads metrics. Returns Partial if some could not be read. Raises ToolUnavailable if none could."""

    async def series(self, service: str, window: TimeWindow) -> list[Series]:
        """Return every metric of a service over the window; none for an unknown service."""
        ...


class ChangeReader(NamedTool, Protocol):
    """Reads changes. Returns Partial if some could not be read. Raises ToolUnavailable if none could."""

    async def changes(self, window: TimeWindow) -> list[Change]:
        """Return every change within the window, oldest first, of any service."""
        ...


@dataclass(frozen=True, slots=True)
class CodeDefinition:
    """A class or function in a repository. Untrusted.

    `container` is its class, may be empty; `path` is relative to the repository, and `line` counts from 1.
    """

    name: str
    container: str
    repository: str
    path: str
    line: int
    text: str


class CodeReader(NamedTool, Protocol):
    """Reads source code. Raises ToolUnavailable."""

    async def definitions(self, names: Sequence[str]) -> list[CodeDefinition]:
        """Return every class and function with one of these simple names, sorted by repository, path and line."""
        ...


@dataclass(frozen=True, slots=True)
class ToolParameter:
    """A parameter of a tool: an id, a service or a snapshot key, never a query. `choices` are all allowed values.

    With `snapshot`, the model passes the key of an earlier observation, and the tool receives the observation.
    """

    name: str
    description: str
    choices: tuple[str, ...] = ()
    snapshot: bool = False


class Tool(Protocol):
    """A read-only tool for the investigating model (RCAgent, section 3.2). Raises ToolUnavailable.

    Within one investigation, its output depends only on its arguments. Output is untrusted text.
    """

    @property
    def name(self) -> str:
        """Return a name unique among the tools: letters, digits and underscores."""
        ...

    @property
    def description(self) -> str:
        """Return one sentence that describes the output."""
        ...

    @property
    def parameters(self) -> tuple[ToolParameter, ...]: ...

    async def call(self, arguments: Mapping[str, str]) -> str:
        """Return the observation. `arguments` has a value for every parameter, one of its choices if it has any."""
        ...


class DependencyReader(NamedTool, Protocol):
    """Reads service dependencies from traces. Raises ToolUnavailable."""

    async def dependencies(self, window: TimeWindow) -> dict[str, tuple[str, ...]]:
        """Return the services that each caller called within the window, distinct and sorted; it may be a PartialGraph."""
        ...


@dataclass(frozen=True, slots=True)
class FailedBuild:
    """A failed pipeline run, with the end of the log of its first failed step or of the linked one. Untrusted.

    `stated` is what the build server says of the end itself, a state or message on each line.
    `service` is the service that the pipeline builds, `project` its name on the build server. For a pasted log without
    a build server, all fields but the log and the service are empty.
    """

    system: str
    project: str
    service: str
    run: str
    step: str
    log: str
    url: str = ""
    at: datetime | None = None
    stated: str = ""

    @property
    def history_key(self) -> str:
        """Return the key under which confirmed failures of the same kind are stored; empty if unknown."""
        return f"{self.system or 'pasted'}: {self.project}" if self.project else ""


@runtime_checkable
class BuildReader(NamedTool, Protocol):
    """Reads failed builds. Raises ToolUnavailable."""

    async def linked_failure(self, url: str) -> FailedBuild | None:
        """Return the failed run, attempt or job that a link leads to; None if its project is not configured.

        Raises NoFailedBuild with its state if it did not fail, or does not exist.
        """
        ...

    async def last_failure(self, service: str, before: datetime) -> FailedBuild | None:
        """Return the latest run of a service that began before a time, if it failed; None for an unknown service."""
        ...


@runtime_checkable
class CheckedTool(NamedTool, Protocol):
    """A system whose access can be checked without an incident."""

    async def check(self) -> None:
        """Raise ToolUnavailable if the token, its permissions, the configuration or the connection are wrong."""
        ...


@dataclass(frozen=True, slots=True)
class AlertState:
    """The state of an incident's alerts in a system. `fires` is true of silenced ones, too, and None if it is unknown.

    Then `reason` says why; without a reason, the alerts are none of the system's.
    """

    fires: bool | None
    reason: str = ""


class AlertMonitor(NamedTool, Protocol):
    """Reports the current state of alerts in a monitoring system. Raises ToolUnavailable."""

    async def firing(self, incident: Incident) -> AlertState:
        """Return whether any alert of this incident fires."""
        ...

    async def silences(self) -> list[Silence]:
        """Return the silences in force; none if the system has no silences."""
        ...


class Toolbox(NamedTool, Protocol):
    """An external system that provides tools for the investigating model."""

    async def tools(self, services: Sequence[str], window: TimeWindow) -> list[Tool]:
        """Return the tools for one investigation. Raises ToolUnavailable.

        They return no data from after the window.
        """
        ...
