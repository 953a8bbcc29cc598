"""What a build server did for a service: its last runs, and the log of the last one that failed. One port, three systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from core.ports import TimeWindow, Tool
from core.rca.service_tool import ServiceTool

MAX_RUNS = 20  # listed, the latest ones
EXPLAINED = 5  # runs that failed whose steps are asked for
MAX_LOG = 64 * 1024  # bytes of a log, the last ones
ALWAYS = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a pipeline. All texts are untrusted."""

    id: str
    title: str
    branch: str
    commit: str
    at: datetime
    result: str
    failed: bool
    url: str


@dataclass(frozen=True, slots=True)
class Step:
    """A step that failed; `job` is the id under which the system keeps its log."""

    name: str
    job: str


class BuildServer(Protocol):
    """One build server. Raises ToolUnavailable."""

    async def runs(self, project: str, before: datetime) -> list[Run]:
        """The last MAX_RUNS or fewer runs of a project that began before that time, newest first."""
        ...

    async def failed_steps(self, project: str, run: Run) -> list[Step]: ...

    async def log(self, project: str, run: Run, step: Step) -> str:
        """The last MAX_LOG bytes of the log."""
        ...


class Builds:
    """Toolbox over one build server. `projects` maps a service to its project there."""

    def __init__(self, name: str, server: BuildServer, projects: Mapping[str, str]) -> None:
        self._name = name
        self._server = server
        self._projects = projects

    @property
    def name(self) -> str:
        return self._name

    async def check(self) -> None:
        """Raises ToolUnavailable when the runs of a project cannot be listed."""
        for project in self._projects.values():
            await self._server.runs(project, ALWAYS)

    async def tools(self, services: Sequence[str], window: TimeWindow) -> list[Tool]:
        known = tuple(service for service in services if service in self._projects)

        async def runs(service: str) -> str:
            return await self._runs(self._projects[service], window.end)

        async def failure(service: str) -> str:
            return await self._failure(self._projects[service], window.end)

        if not known:
            return []
        return [
            ServiceTool("build_runs", "The last builds and deployments of a service, with failed steps.", known, runs),
            ServiceTool("build_failure", "The end of the log of the last build that failed.", known, failure),
        ]

    async def _runs(self, project: str, before: datetime) -> str:
        runs = await self._server.runs(project, before)
        explained = [run for run in runs if run.failed][:EXPLAINED]
        steps = {run.id: await self._server.failed_steps(project, run) for run in explained}
        return "\n".join(_told(run, steps.get(run.id, ())) for run in runs) or f"No runs of {project}."

    async def _failure(self, project: str, before: datetime) -> str:
        run = next((run for run in await self._server.runs(project, before) if run.failed), None)
        if run is None:
            return f"No run of {project} failed."
        steps = await self._server.failed_steps(project, run)
        log = await self._server.log(project, run, steps[0]) if steps else ""
        return f"{_told(run, steps)}\n{log}".rstrip()


def _told(run: Run, failed: Sequence[Step]) -> str:
    steps = f"; failed: {', '.join(step.name for step in failed)}" if failed else ""
    return (
        f"{run.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC {run.id} {run.result}: {run.title}"
        f" ({run.branch or 'no branch'} {run.commit[:12]}){steps}"
    )
