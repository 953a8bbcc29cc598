"""Builds of continuous integration, and the commits and deployments of repositories on a server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, TypeAdapter
from yarl import URL

from adapters.edge import Items, Moment, gaps_in, typed, unread
from adapters.tools.section import Part, Tools, chosen, detailed, kept, whole_text, with_gaps
from core.model.errors import NoFailedBuild, NotThere, ToolUnavailable
from core.model.explanation import Gap, GapReason
from core.ports import Change, FailedBuild, Partial, TimeWindow, Tool
from core.rca.build_log import ENDED, build_end, plain
from core.rca.observation_tools import ServiceTool

MAX_RUNS = 20  # latest runs that are listed
EXPLAINED = 5  # failed runs whose steps are requested
MAX_LOG = 64 * 1024  # last bytes of a log that a language model may read
MAX_FAILED_LOG = 16 * 1024 * 1024  # last bytes of a failed run's log that are requested
MAX_WHOLE_LOG = 1024 * 1024  # last characters of a log that are searched for the failing lines
MAX_PAGE = 100  # jobs in one answer, the maximum of GitHub and GitLab
MAX_PAGES = 10
MAX_CANCELLED = 3  # cancelled steps whose logs are searched for a timeout
ALWAYS = datetime(9999, 1, 1, tzinfo=UTC)
FAILED = frozenset(
    "failure timed_out startup_failure"  # GitHub
    " failed partiallySucceeded succeededWithIssues abandoned"  # GitLab and Azure DevOps
    " FAILURE UNSTABLE".split()  # Jenkins
)
CANCELLED = frozenset("cancelled canceled ABORTED".split())
PASSED = frozenset("success succeeded SUCCESS neutral skipped".split())
STATES = (
    (PASSED, "passed"),
    (CANCELLED, "was cancelled"),
    (FAILED, "failed, but has no failed job with a log"),
    (frozenset({"unknown"}), "has no failed job"),
)

T = TypeVar("T")


class Run(BaseModel):
    """A run of a pipeline. All texts are untrusted. Each field is filled from the first name in a server's answer."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(validation_alias=AliasChoices("id", "number"), coerce_numbers_to_str=True)
    name: str | None = Field("", validation_alias=AliasChoices(AliasPath("definition", "name"), "name"))
    title: str | None = Field("", validation_alias=AliasChoices("display_title", "displayName", "buildNumber"))
    source: str | None = ""
    branch: str | None = Field("", validation_alias=AliasChoices("head_branch", "ref", "sourceBranch"))
    commit: str = Field("", validation_alias=AliasChoices("head_sha", "sha", "sourceVersion"))
    at: Moment = Field(validation_alias=AliasChoices("created_at", "queueTime", "timestamp"))
    status: str | None = ""
    attempts: int = Field(1, validation_alias="run_attempt")
    earlier: str = ""  # the attempt that a link names, unless it is the latest
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
class RunStep:
    """A step of a run. `job` is its id in links, and that of its log unless `log` is.

    `stated` is what the server says of its end besides the result, on lines.
    """

    name: str
    job: str
    log: str = ""
    result: str = "failed"
    stated: str = ""

    @property
    def failed(self) -> bool:
        return self.result in FAILED


@dataclass(frozen=True, slots=True)
class BuildLink:
    """The run or job in the address of a build server's page. One of them may be empty.

    Without an attempt, the latest one is meant, unless the job belongs to another.
    """

    run: str
    job: str = ""
    attempt: str = ""


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

    async def steps(self, project: str, run: Run) -> list[RunStep]:
        """Return the steps of a run that failed or were cancelled, in order."""
        ...

    async def step(self, project: str, run: Run, job: str) -> RunStep | None:
        """Return the step with an id from a link, of any attempt and result; None if the run has none."""
        ...

    async def log(self, project: str, run: Run, step: RunStep, last: int) -> str:
        """Return the last bytes of the log."""
        ...

    async def stated(self, project: str, step: RunStep) -> str:
        """Return what the server says of the end of a step, a state or message on each line."""
        return f"{step.result}\n{step.stated}"


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
        return await _certain(self._behind(url))

    async def _behind(self, url: str) -> FailedBuild | None:
        try:
            links = [(service, self._server.link(URL(url), project)) for service, project in self._projects.items()]
        except ValueError:
            return None
        for service, link in links:
            if link is not None and (build := await self._linked(service, link, url)):
                return build
        return None

    async def _linked(self, service: str, link: BuildLink, url: str) -> FailedBuild | None:
        project = self._projects[service]
        named = f"run {link.run}" if link.run else f"job {link.job}"
        try:
            run = await self._server.run(project, link)
            return await self._failed(service, run, link.job, url) if run else None
        except NotThere as error:
            raise NoFailedBuild(
                f"{named} of {project}, or its log, is gone or hidden from the token: {error}"
            ) from error

    async def last_failure(self, service: str, before: datetime) -> FailedBuild | None:
        if service not in self._projects:
            return None
        try:
            return await _certain(self._last(service, before))
        except NoFailedBuild:
            return None

    async def _last(self, service: str, before: datetime) -> FailedBuild | None:
        runs = await self._server.runs(self._projects[service], before)
        return await self._failed(service, runs[0]) if runs else None

    async def tools(self, services: Sequence[str], window: TimeWindow) -> list[Tool]:
        built = tuple(service for service in services if service in self._projects)

        async def runs(service: str) -> str:
            return await whole_text(self._runs(self._projects[service], window.end))

        async def failure(service: str) -> str:
            return await whole_text(self._failure(self._projects[service], window.end))

        if not built:
            return []
        return [
            ServiceTool("build_runs", "The last builds and deployments of a service, with failed steps.", built, runs),
            ServiceTool("build_failure", "The end of the log of the last build that failed.", built, failure),
        ]

    async def _runs(self, project: str, before: datetime) -> str:
        runs = await self._server.runs(project, before)
        failures = [run for run in runs if run.failed]
        explained = chosen(failures, EXPLAINED, f"{self.name}: failed steps", lambda run: run.id)
        named = await asyncio.gather(*(self._failed_steps(project, run) for run in explained))
        steps = {run.id: failed for run, failed in zip(explained, named, strict=True)}
        rows = "\n".join(_format_run(run, steps.get(run.id, ())) for run in runs) or f"No runs of {project}."
        return with_gaps(rows, explained.gaps)

    async def _failure(self, project: str, before: datetime) -> str:
        runs = await self._server.runs(project, before)
        run = next((run for run in runs if run.failed), None)
        if run is None:
            among = f" among the last {MAX_RUNS}" if len(runs) >= MAX_RUNS else ""
            return f"No run of {project} failed{among}."
        steps = await self._failed_steps(project, run)
        log = await self._server.log(project, run, steps[0], MAX_LOG) if steps else ""
        return f"{_format_run(run, steps)}\n{plain(log)}".rstrip()

    async def _failed_steps(self, project: str, run: Run) -> list[RunStep]:
        return [step for step in await self._server.steps(project, run) if step.failed]

    async def _failed(self, service: str, run: Run, job: str = "", url: str = "") -> FailedBuild:
        """Return a run with the log of `job`, or of its first failed step. Raises NoFailedBuild."""
        project = self._projects[service]
        named = f"run {run.id}, attempt {run.earlier}" if run.earlier else f"run {run.id}"
        if job:
            step = await self._server.step(project, run, job)
            named = f"job {step.name if step else job} of {named}"
            steps, state = [step] if step else [], _state(step.result) if step else "is gone"
        else:
            steps = [] if run.result in PASSED else await self._server.steps(project, run)
            state = _state(run.result)
        tried = [step for step in steps if step.failed] + [step for step in steps if step.result in CANCELLED]
        for step in tried[: MAX_CANCELLED + 1]:
            stated = await self._server.stated(project, step)
            try:
                log = await self._server.log(project, run, step, MAX_FAILED_LOG)
            except ToolUnavailable:  # a job whose runner was lost, or that never began, may have no log
                if step.failed and build_end("", stated) is None:
                    raise
                log = ""
            end = build_end(log[-MAX_LOG:], stated)
            if (end is not None and end.end in ENDED) or (step.failed and log.strip()):
                lines = whole_lines(log)
                return FailedBuild(
                    self.name, project, service, run.id, step.name, lines, url or run.url, run.at, stated
                )
        raise NoFailedBuild(f"{named} of {project} {state}")


async def _certain(failure: Awaitable[FailedBuild | None]) -> FailedBuild | None:
    """Return a failure. Raises ToolUnavailable instead of NoFailedBuild if what was not read may be the failure."""
    with unread() as gaps:
        try:
            return await failure
        except NoFailedBuild as error:
            if gaps:
                raise ToolUnavailable(f"{error}; not read: {gaps[0].detail}.") from error
            raise


def _state(result: str) -> str:
    """Return a clause about a run or job that has no failed step to show."""
    return next((state for results, state in STATES if result in results), f"is {result}")


async def all_pages(page: Callable[[dict[str, str]], Awaitable[list[T]]]) -> list[T]:
    """Return the items of all pages of a list on GitHub or GitLab, up to MAX_PAGES. `page` receives the parameters."""
    all_items: list[T] = []
    for number in range(1, MAX_PAGES + 1):
        items = await page({"per_page": str(MAX_PAGE), "page": str(number)})
        all_items += items
        if len(items) < MAX_PAGE and not gaps_in(items):
            break
    return all_items


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


def _format_run(run: Run, failed: Sequence[RunStep]) -> str:
    return f"{run}; failed: {', '.join(step.name for step in failed)}" if failed else str(run)


MAX_COMMITS = 50  # latest commits of a repository within a window
MAX_DEPLOYMENTS = 50
MAX_DIFFS = 12  # latest commits of a repository whose diffs are read
MAX_DIFF = 20_000  # characters per commit
MAX_FILES = 200
MAX_TITLE = 500  # characters
MAX_DETAIL = 4_000


class RepositoryHost(Protocol):
    """A repository server. Its results name no service. Raises ToolUnavailable, and returns Partial like a reader."""

    async def commits(self, project: str, window: TimeWindow) -> list[Change]: ...

    async def deployments(self, project: str, window: TimeWindow) -> list[Change]: ...

    async def with_diff(self, project: str, commit: Change) -> Change:
        """Return the commit with its files and diff."""
        ...


class HostedChanges:
    """ChangeReader over the repositories of `services`: service → project.

    A commit in a repository that several services share has no service: its paths show which ones it affects.
    """

    def __init__(self, name: str, host: RepositoryHost, services: Mapping[str, str]) -> None:
        self.name = name
        self._host = host
        self._services: dict[str, list[str]] = {}
        for service, project in services.items():
            self._services.setdefault(project, []).append(service)

    async def changes(self, window: TimeWindow) -> list[Change]:
        read = await kept(self.name, [part for project in self._services for part in self._parts(project, window)])
        changes = [change for change in read if window.start <= change.at < window.end]
        return Partial(sorted(changes, key=lambda change: change.at), read.gaps)

    def _parts(self, project: str, window: TimeWindow) -> list[Part[Change]]:
        return [
            (f"commits of {project}", self._commits(project, window)),
            (f"deployments of {project}", self._deployments(project, window)),
        ]

    async def _commits(self, project: str, window: TimeWindow) -> list[Change]:
        commits = await self._host.commits(project, window)
        ordered = sorted(commits, key=lambda commit: commit.at, reverse=True)
        latest = chosen(ordered, MAX_DIFFS, f"{self.name}: diffs of {project}", lambda commit: commit.id)
        shown = await detailed(
            self.name, [(f"diff of {each.id}", each, self._host.with_diff(project, each)) for each in latest]
        )
        owners = self._services[project]
        owner = owners[0] if len(owners) == 1 else ""
        named = (replace(each, service=owner) for each in (*shown, *ordered[MAX_DIFFS:]))
        return Partial(named, (*gaps_in(commits), *shown.gaps, *latest.gaps, *not_listed(commits, MAX_COMMITS)))

    async def _deployments(self, project: str, window: TimeWindow) -> list[Change]:
        owners = self._services[project]
        deployments = await self._host.deployments(project, window)
        return typed(deployments, lambda change: replace(change, service=_deployed(change, owners)))


def not_listed(items: Sequence[object], most: int) -> list[Gap]:
    """Return a gap if a server may have more than the last `most` items that were asked for."""
    return [Gap("", GapReason.LEFT_OUT, f"all before the last {most}")] if len(items) >= most else []


def _deployed(deployment: Change, owners: Sequence[str]) -> str:
    """Return the service that a deployment names, or the only one of its repository."""
    named = [owner for owner in owners if owner in f"{deployment.title} {deployment.detail}"]
    return max(named or (owners if len(owners) == 1 else [""]), key=len)


class ChangedFile(BaseModel):
    path: str = Field(validation_alias=AliasChoices("filename", "new_path", AliasPath("item", "path")))
    patch: str = Field("", validation_alias=AliasChoices("patch", "diff"))
    is_folder: bool = Field(False, validation_alias=AliasPath("item", "isFolder"))


class Commit(BaseModel):
    """A commit. Each field is filled from the first name in a server's answer."""

    sha: str = Field(validation_alias=AliasChoices("sha", "id"))
    at: Moment = Field(
        validation_alias=AliasChoices(AliasPath("commit", "committer", "date"), "committed_date", "timestamp")
    )
    author: str = Field(
        "",
        validation_alias=AliasChoices(
            AliasPath("commit", "author", "name"), "author_name", AliasPath("author", "displayName")
        ),
    )
    message: str = Field(validation_alias=AliasChoices(AliasPath("commit", "message"), "message"))
    url: str = Field("", validation_alias=AliasChoices("html_url", "web_url", "displayUri"))

    @property
    def change(self) -> Change:
        title, _, body = self.message.partition("\n")
        return Change(
            id=self.sha[:12],
            at=self.at,
            kind="commit",
            service="",
            author=self.author[:MAX_TITLE],
            title=title[:MAX_TITLE],
            detail=body.strip()[:MAX_DETAIL],
            url=self.url,
            revision=self.sha,
        )


class Deployment(BaseModel):
    """A deployment. Each field is filled from the first name in a server's answer."""

    id: int
    sha: str
    ref: str = ""
    environment: str = Field("", validation_alias=AliasChoices(AliasPath("environment", "name"), "environment"))
    description: str | None = ""
    at: Moment = Field(validation_alias="created_at")
    author: str = Field("", validation_alias=AliasChoices(AliasPath("creator", "login"), AliasPath("user", "name")))

    @property
    def change(self) -> Change:
        return Change(
            id=f"deployment-{self.id}",
            at=self.at,
            kind="deploy",
            service="",
            author=self.author,
            title=f"{self.ref} to {self.environment}"[:MAX_TITLE],
            detail=(self.description or "")[:MAX_DETAIL],
            revision=self.sha,
        )


COMMITS = TypeAdapter(Items[Commit])
FILES = TypeAdapter(Items[ChangedFile])


def with_files(commit: Change, files: Sequence[ChangedFile]) -> Change:
    """Return a commit with its files and diff."""
    diff = "\n".join(f"--- a/{each.path}\n+++ b/{each.path}\n{each.patch.rstrip()}" for each in files if each.patch)
    paths = tuple(each.path.lstrip("/") for each in files if not each.is_folder)
    return replace(commit, files=paths[:MAX_FILES], diff=diff[:MAX_DIFF])


class HostedRepositories(RepositoryHost, BuildServer, Protocol):
    """A server with repositories and builds."""


def hosted_tools(name: str, server: HostedRepositories, services: Mapping[str, str]) -> Tools:
    """Return the tools that read the builds of a server, and its commits and deployments."""
    changes = HostedChanges(f"{name} changes", server, services)
    return Tools(toolboxes=(Builds(name, server, services),), changes=(changes,))
