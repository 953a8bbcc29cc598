"""Monitoring, code and builds: what an investigation looks at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from core.model.incident import Incident
from core.model.silences import Silence


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """From `start` (inclusive) to `end` (exclusive), both with a time zone."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class LogLine:
    """One log record; `text` may hold several lines (a stack trace). Untrusted."""

    service: str
    at: datetime
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Series:
    """A metric over time: `values[i]` was measured at `times[i]` (ascending); a missing value is NaN."""

    service: str
    metric: str
    times: tuple[datetime, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """Something that somebody or something changed: a commit, a deployment, a configuration, a flag, a migration. Untrusted.

    It touches `service` and the `services`, or none that is named. `revision` is the commit that it is, or that it puts
    into force; a deployment of several names all of them in `commits`. `diff` is a unified diff, perhaps cut.
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
    def touched(self) -> tuple[str, ...]:
        """Every service that it names, each once."""
        return tuple(dict.fromkeys(each for each in (self.service, *self.services) if each))


class LogReader(Protocol):
    """Reads logs. Raises ToolUnavailable."""

    @property
    def name(self) -> str: ...

    async def lines(self, service: str, window: TimeWindow, limit: int) -> list[LogLine]:
        """The last `limit` records of a service within the window, oldest first; none for an unknown service."""
        ...


class MetricReader(Protocol):
    """Reads metrics. Raises ToolUnavailable."""

    @property
    def name(self) -> str: ...

    async def series(self, service: str, window: TimeWindow) -> list[Series]:
        """Every metric of a service over the window; none for an unknown service."""
        ...


class ChangeReader(Protocol):
    """Reads changes. Raises ToolUnavailable."""

    @property
    def name(self) -> str: ...

    async def changes(self, window: TimeWindow) -> list[Change]:
        """Every change within the window, oldest first, whatever service it touches."""
        ...


@dataclass(frozen=True, slots=True)
class Definition:
    """A class or function in a repository. Untrusted.

    `container` is the class that it belongs to, empty for none; `path` is relative to the repository and `line` counts
    from 1. `references` are the names of what it calls and of the types it uses, in order, qualified where the code is.
    """

    name: str
    container: str
    repository: str
    path: str
    line: int
    text: str
    references: tuple[str, ...]


class CodeReader(Protocol):
    """Reads source code. Raises ToolUnavailable."""

    @property
    def name(self) -> str: ...

    async def definitions(self, names: Sequence[str]) -> list[Definition]:
        """Every class and function of one of these simple names, in order of repository, path and line."""
        ...


@dataclass(frozen=True, slots=True)
class ToolParameter:
    """A parameter of a tool: an id, a service or a snapshot key, never a query. `choices` are all allowed values.

    With `snapshot` the value is the key of an earlier observation, and the tool gets the observation itself.
    """

    name: str
    description: str
    choices: tuple[str, ...] = ()
    snapshot: bool = False


class Tool(Protocol):
    """Something read-only that the investigating model may ask (RCAgent, section 3.2). Raises ToolUnavailable.

    What it answers depends on its arguments alone for the length of one investigation, and is untrusted text.
    """

    @property
    def name(self) -> str:
        """Unique among the tools; letters, digits and underscores."""
        ...

    @property
    def description(self) -> str:
        """A description of its output, in one sentence."""
        ...

    @property
    def parameters(self) -> tuple[ToolParameter, ...]: ...

    async def call(self, arguments: Mapping[str, str]) -> str:
        """The observation; `arguments` has a value for every parameter, one of its choices if it has any."""
        ...


class DependencyReader(Protocol):
    """Reads which service calls which, as traces show it. Raises ToolUnavailable."""

    @property
    def name(self) -> str: ...

    async def dependencies(self, window: TimeWindow) -> dict[str, tuple[str, ...]]:
        """Caller → the services that it called within the window, each once, in order of their names."""
        ...


@dataclass(frozen=True, slots=True)
class FailedBuild:
    """A run of a pipeline that failed, with the end of the log of its first failed step. Untrusted.

    `service` is the one whose builds these are, `project` what the build server calls it. Where there is no build server
    because somebody pasted a log, all but the log and the service are empty.
    """

    system: str
    project: str
    service: str
    run: str
    step: str
    log: str
    url: str = ""
    at: datetime | None = None

    @property
    def history_key(self) -> str:
        """Under what confirmed failures of the same kind are kept; empty where nothing tells what ran."""
        return f"{self.system or 'pasted'}: {self.project}" if self.project else ""


@runtime_checkable
class BuildReader(Protocol):
    """Reads builds that failed. Raises ToolUnavailable."""

    @property
    def name(self) -> str: ...

    async def linked_failure(self, url: str) -> FailedBuild | None:
        """The failed run that a link leads to; None if it did not fail, or is not one of the configured projects."""
        ...

    async def last_failure(self, service: str, before: datetime) -> FailedBuild | None:
        """The latest run of a service that began before that time, if it failed; None for an unknown service."""
        ...


@runtime_checkable
class CheckedTool(Protocol):
    """A system that an investigation reads, behind a door: whether it opens can be told without an incident."""

    @property
    def name(self) -> str: ...

    async def check(self) -> None:
        """Raises ToolUnavailable when the token, its rights, the configuration or the way there is wrong."""
        ...


class AlertMonitor(Protocol):
    """A monitoring system that tells what it knows of alerts right now. Raises ToolUnavailable."""

    @property
    def name(self) -> str: ...

    async def firing(self, incident: Incident) -> bool | None:
        """Return whether an alert of this incident fires, silenced or not; None if this system cannot tell."""
        ...

    async def silences(self) -> list[Silence]:
        """Those that are in force; none where the system knows no silences."""
        ...


class Toolbox(Protocol):
    """An outside system that the investigating model may ask."""

    @property
    def name(self) -> str: ...

    async def tools(self, services: Sequence[str], window: TimeWindow) -> list[Tool]:
        """The tools for one investigation. Raises ToolUnavailable.

        Of what has a time they tell nothing from after the window.
        """
        ...
