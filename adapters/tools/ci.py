"""The latest runs of a service on a build server, and logs of failed ones, for four systems."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from pydantic import AliasChoices, AliasPath, AwareDatetime, BaseModel, ConfigDict, Field
from yarl import URL

from core.ports import FailedBuild, TimeWindow, Tool
from core.rca.build_log import plain
from core.rca.observation_tools import ServiceTool

MAX_RUNS = 20  # latest runs that are listed
EXPLAINED = 5  # failed runs whose steps are requested
MAX_LOG = 64 * 1024  # last bytes of a log that a language model may read
MAX_FAILED_LOG = 16 * 1024 * 1024  # last bytes of a failed run's log that are requested
MAX_WHOLE_LOG = 1024 * 1024  # last characters of a log that are searched for the failing lines
ALWAYS = datetime(9999, 1, 1, tzinfo=UTC)
FAILED = frozenset(
    "failure timed_out startup_failure"  # GitHub
    " failed partiallySucceeded"  # GitLab and Azure DevOps
    " FAILURE UNSTABLE".split()  # Jenkins
)


class Run(BaseModel):
    """A run of a pipeline. All texts are untrusted. Each field is filled from the first name in a server's answer."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)

    id: str = Field(validation_alias=AliasChoices("id", "number"))
    name: str | None = Field("", validation_alias=AliasChoices(AliasPath("definition", "name"), "name"))
    title: str | None = Field("", validation_alias=AliasChoices("display_title", "displayName", "buildNumber"))
    source: str | None = ""
    branch: str | None = Field("", validation_alias=AliasChoices("head_branch", "ref", "sourceBranch"))
    commit: str = Field("", validation_alias=AliasChoices("head_sha", "sha", "sourceVersion"))
    at: AwareDatetime = Field(validation_alias=AliasChoices("created_at", "queueTime", "timestamp"))
    status: str | None = ""
    conclusion: str | None = Field(None, validation_alias=AliasChoices("conclusion", "result"))
    url: str = Field(
        "", validation_alias=AliasChoices("html_url", "web_url", AliasPath("_links", "web", "href"), "url")
    )

    @property
    def result(self) -> str:
        return self.conclusion or self.status or "unknown"

    @property
    def failed(self) -> bool:
        return self.result in FAILED

    def __str__(self) -> str:
        """Return a line about the run."""
        by = f"pipeline by {self.source}" if self.source else ""
        title = " ".join(part for part in (self.name, self.title, by) if part)
        branch = (self.branch or "no branch").removeprefix("refs/heads/")
        return f"{self.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC {self.id} {self.result}: {title} ({branch} {self.commit[:12]})"


@dataclass(frozen=True, slots=True)
class Step:
    """A failed step. `job` is its id in links, and that of its log unless `log` is."""

    name: str
    job: str
    log: str = ""


@dataclass(frozen=True, slots=True)
class BuildLink:
    """The run or job in the address of a build server's page. One of them may be empty."""

    run: str
    job: str = ""


class BuildServer(Protocol):
    """A build server. Raises ToolUnavailable."""

    def link(self, url: URL, project: str) -> BuildLink | None:
        """Return the run or job of a project that a link names; None for other links."""
        ...

    async def run(self, project: str, link: BuildLink) -> Run | None:
        """Return the run that a link names; None if it is another project's."""
        ...

    async def runs(self, project: str, before: datetime) -> Sequence[Run]:
        """Return up to MAX_RUNS runs of a project that began before a time, newest first."""
        ...

    async def failed_steps(self, project: str, run: Run) -> list[Step]: ...

    async def log(self, project: str, run: Run, step: Step, last: int) -> str:
        """Return the last bytes of the log."""
        ...


class Builds:
    """Toolbox and BuildReader over a build server. `projects` maps a service to its project."""

    def __init__(self, name: str, server: BuildServer, projects: Mapping[str, str]) -> None:
        self.name = name
        self._server = server
        self._projects = projects

    async def check(self) -> None:
        """Raise ToolUnavailable if the runs of a project cannot be listed."""
        for project in self._projects.values():
            await self._server.runs(project, ALWAYS)

    async def linked_failure(self, url: str) -> FailedBuild | None:
        try:
            links = [(service, self._server.link(URL(url), project)) for service, project in self._projects.items()]
        except ValueError:
            return None
        for service, link in links:
            if link is not None and (run := await self._server.run(self._projects[service], link)):
                return await self._failed(service, run, link.job)
        return None

    async def last_failure(self, service: str, before: datetime) -> FailedBuild | None:
        if service not in self._projects:
            return None
        runs = await self._server.runs(self._projects[service], before)
        return await self._failed(service, runs[0]) if runs else None

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
        named = await asyncio.gather(*(self._server.failed_steps(project, run) for run in explained))
        steps = {run.id: failed for run, failed in zip(explained, named, strict=True)}
        return "\n".join(_format_run(run, steps.get(run.id, ())) for run in runs) or f"No runs of {project}."

    async def _failure(self, project: str, before: datetime) -> str:
        run = next((run for run in await self._server.runs(project, before) if run.failed), None)
        if run is None:
            return f"No run of {project} failed."
        steps = await self._server.failed_steps(project, run)
        log = await self._server.log(project, run, steps[0], MAX_LOG) if steps else ""
        return f"{_format_run(run, steps)}\n{plain(log)}".rstrip()

    async def _failed(self, service: str, run: Run, job: str = "") -> FailedBuild | None:
        """Return a run with the log of `job`, or of its first failed step; None if it did not fail."""
        if not run.failed:
            return None
        project = self._projects[service]
        steps = await self._server.failed_steps(project, run)
        step = next((each for each in steps if each.job == job), steps[0] if steps else None)
        log = await self._server.log(project, run, step, MAX_FAILED_LOG) if step else ""
        return FailedBuild(
            self.name, project, service, run.id, step.name if step else "", whole_lines(log), run.url, run.at
        )


def whole_lines(log: str) -> str:
    """Return the last MAX_WHOLE_LOG characters of a log, plain, with blank lines for earlier ones, so that line numbers
    hold.
    """
    cut = max(0, len(log) - MAX_WHOLE_LOG)
    return "\n" * log.count("\n", 0, cut) + plain(log[cut:])


def page_of(url: URL, base: URL) -> str:
    """Return the path of a page below a server's address, without outer slashes; empty for other pages."""
    prefix = base.path.rstrip("/")
    if (url.host, url.port) != (base.host, base.port) or not url.path.startswith(f"{prefix}/"):
        return ""
    return url.path[len(prefix) :].strip("/")


def same(project: str, other: str) -> bool:
    return project.strip("/").casefold() == other.casefold()


def _format_run(run: Run, failed: Sequence[Step]) -> str:
    return f"{run}; failed: {', '.join(step.name for step in failed)}" if failed else str(run)
