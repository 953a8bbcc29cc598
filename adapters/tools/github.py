"""GitHub, REST API: https://docs.github.com/en/rest/actions, …/rest/commits/commits, …/rest/deployments/deployments"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Literal
from urllib.parse import quote

from pydantic import BaseModel, Field, TypeAdapter
from yarl import URL

from adapters.edge import Items, Moment, gaps_in, typed
from adapters.http import Http
from adapters.section import EnvironmentName, Host, Url
from adapters.tools.ci import (
    CANCELLED,
    COMMITS,
    FAILED,
    MAX_COMMITS,
    MAX_DEPLOYMENTS,
    MAX_RUNS,
    BuildLink,
    BuildServer,
    ChangedFile,
    Deployment,
    Run,
    RunStep,
    all_pages,
    hosted_tools,
    not_listed,
    page_of,
    same,
    with_files,
)
from adapters.tools.section import Named, Tools, ToolSection, answers, open_http
from core.model.errors import ToolUnavailable
from core.ports import Change, Partial, TimeWindow, gap_of

MAX_ATTEMPTS = 10  # latest attempts of a run in which a linked job is looked for
MAX_STATUSES = 20  # latest deployments whose statuses are read
RUNNER = ".github"  # path of what a runner notes itself
UNREAD = "its statuses were not read"
WAIT = timedelta(hours=6)  # between the creation of a deployment and its success
_PAGE = re.compile(
    r"(?P<project>[^/]+/[^/]+)/actions/runs/(?P<run>\d+)(?:/attempts/(?P<attempt>\d+))?(?:/jobs?/(?P<job>\d+))?(?:/.*)?"
)

_CHECK = re.compile(
    r"(?P<project>[^/]+/[^/]+)/(?:runs/(?P<job>\d+)|(?:pull|commit)/\w+/checks(?:/(?P<check>\d+))?)(?:/.*)?"
)
"""The page of a check. One of GitHub Actions has the id of its job."""

HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}


class _Runs(BaseModel):
    workflow_runs: Items[Run]


class _Step(BaseModel):
    name: str
    status: str | None = ""
    conclusion: str | None = None


class _Job(_Step):
    id: int
    steps: Items[_Step] = []

    @property
    def step(self) -> RunStep:
        step = next((step.name for step in self.steps if step.conclusion in FAILED), "")
        result = self.conclusion or self.status or "unknown"
        return RunStep(f"{self.name}: {step}" if step else self.name, str(self.id), result=result)


class _Jobs(BaseModel):
    jobs: Items[_Job]


class _JobOfRun(BaseModel):
    run_id: int


class _Status(BaseModel):
    state: str
    at: Moment | None = Field(None, validation_alias="created_at")


class _Whole(BaseModel):
    files: Items[ChangedFile] = []


_RUN = TypeAdapter(Run)
_RUNS = TypeAdapter(_Runs)
_JOBS = TypeAdapter(_Jobs)
_JOB = TypeAdapter(_JobOfRun)
_ANNOTATIONS = TypeAdapter(list[dict[str, object]])
_WHOLE = TypeAdapter(_Whole)
_DEPLOYMENTS = TypeAdapter(Items[Deployment])
_STATUSES = TypeAdapter(Items[_Status])


class GitHub(BuildServer):
    """BuildServer and RepositoryHost for projects `owner/repository`.

    Logs are on another host, which `http.elsewhere` must allow.
    """

    def __init__(self, http: Http) -> None:
        self._http = http

    def link(self, url: URL, project: str) -> BuildLink | None:
        api = URL(self._http.url)  # of a self-hosted installation: https://HOST/api/v3
        base = URL("https://github.com") if api.host == "api.github.com" else api.origin()
        path = page_of(url, base)
        page = _PAGE.fullmatch(path)
        if page and same(project, page["project"]):
            return BuildLink(page["run"], page["job"] or "", page["attempt"] or "")
        check = _CHECK.fullmatch(path)
        if check and same(project, check["project"]):
            job = check["job"] or check["check"] or url.query.get("check_run_id", "")
            return BuildLink("", job) if job.isascii() and job.isdecimal() else None
        return None

    async def run(self, project: str, link: BuildLink) -> Run:
        """Return the run; without the result, which is the latest attempt's, if the link names an earlier one."""
        number = link.run or (await self._http.parsed(f"{_path(project)}/actions/jobs/{link.job}", _JOB)).run_id
        run = await self._http.parsed(f"{_path(project)}/actions/runs/{number}", _RUN)
        if link.attempt in ("", str(run.attempts)):
            return run
        return run.model_copy(update={"earlier": link.attempt, "conclusion": None, "status": None})

    async def runs(self, project: str, before: datetime) -> Sequence[Run]:
        query = {"per_page": str(MAX_RUNS), "created": f"<={before.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"}
        runs = (await self._http.parsed(f"{_path(project)}/actions/runs", _RUNS, query)).workflow_runs
        return [run for run in runs if run.at < before][:MAX_RUNS]

    async def steps(self, project: str, run: Run) -> list[RunStep]:
        return [job.step for job in await self._jobs(project, run, run.earlier) if job.conclusion in FAILED | CANCELLED]

    async def step(self, project: str, run: Run, job: str) -> RunStep | None:
        for attempt in (run.earlier, *map(str, range(run.attempts - 1, max(0, run.attempts - MAX_ATTEMPTS), -1))):
            for each in await self._jobs(project, run, attempt):
                if str(each.id) == job:
                    return each.step
        return None

    async def _jobs(self, project: str, run: Run, attempt: str) -> list[_Job]:
        """Return the jobs of an attempt; of the latest one for an empty one."""
        path = f"{_path(project)}/actions/runs/{run.id}{f'/attempts/{attempt}' if attempt else ''}/jobs"

        async def page(query: dict[str, str]) -> list[_Job]:
            return (await self._http.parsed(path, _JOBS, query)).jobs

        return await all_pages(page)

    async def log(self, project: str, run: Run, step: RunStep, last: int) -> str:
        return await self._http.text(f"{_path(project)}/actions/jobs/{step.job}/logs", last=last)

    async def stated(self, project: str, step: RunStep) -> str:
        """Return the result, and the failures that the runner itself noted, if the token may read them.

        Other notes are those of tools, about files of the repository.
        """
        notes = list[dict[str, object]]()
        with suppress(ToolUnavailable):
            notes += await self._http.parsed(f"{_path(project)}/check-runs/{step.job}/annotations", _ANNOTATIONS)
        own = [note for note in notes if (note.get("path"), note.get("annotation_level")) == (RUNNER, "failure")]
        return "\n".join((step.result, *(str(note.get("message", "")) for note in own)))

    async def commits(self, project: str, window: TimeWindow) -> list[Change]:
        query = {"since": window.start.isoformat(), "until": window.end.isoformat(), "per_page": str(MAX_COMMITS)}
        return typed(await self._http.parsed(f"{_path(project)}/commits", COMMITS, query), lambda each: each.change)

    async def deployments(self, project: str, window: TimeWindow) -> list[Change]:
        """Return the deployments that succeeded, and those of which that is not known."""
        listed = await self._http.parsed(
            f"{_path(project)}/deployments", _DEPLOYMENTS, {"per_page": str(MAX_DEPLOYMENTS)}
        )
        recent = [each for each in listed if each.at >= window.start - WAIT]
        created = [each for each in recent if each.at < window.end]
        statuses = await answers(
            [(f"statuses of deployment {each.id}", self._statuses(project, each)) for each in created[:MAX_STATUSES]]
        )
        changes = Partial[Change](gaps=(*gaps_in(listed), *not_listed(recent, MAX_DEPLOYMENTS)))
        for deployment, given in zip(created, statuses, strict=False):
            if isinstance(given, ToolUnavailable):
                changes.gaps += (gap_of(f"statuses of deployment {deployment.id}", given),)
            changes += _outcome(deployment, given)
        changes += [_unknown(each.change, UNREAD) for each in created[MAX_STATUSES:]]
        return changes

    async def _statuses(self, project: str, deployment: Deployment) -> list[_Status]:
        address = f"{_path(project)}/deployments/{deployment.id}/statuses"
        return await self._http.parsed(address, _STATUSES, {"per_page": "100"})

    async def with_diff(self, project: str, commit: Change) -> Change:
        whole = await self._http.parsed(f"{_path(project)}/commits/{quote(commit.id)}", _WHOLE)
        return with_files(commit, whole.files)


def _outcome(deployment: Deployment, statuses: list[_Status] | ToolUnavailable) -> list[Change]:
    """Return the deployment at the time of its first success; nothing if it failed or is not finished."""
    if isinstance(statuses, ToolUnavailable):
        return [_unknown(deployment.change, UNREAD)]
    if at := [each.at or deployment.at for each in statuses if each.state == "success"]:
        return [replace(deployment.change, at=min(at))]
    if gaps_in(statuses):
        return [_unknown(deployment.change, UNREAD)]
    return [] if statuses else [_unknown(deployment.change, "GitHub names no status")]


def _unknown(deployment: Change, why: str) -> Change:
    return replace(deployment, title=f"{deployment.title}, whose success is not known: {why}")


def _path(project: str) -> str:
    return f"repos/{quote(project, safe='/')}"


class GitHubActionsTool(ToolSection):
    """GitHub Actions. `services` maps a service to `owner/repository`.

    `log_hosts` (`host` or `host:port`) are the hosts that GitHub may redirect log downloads to.
    """

    kind: Literal["github_actions"]
    name: str = "GitHub Actions"
    url: Url = "https://api.github.com"
    services: Named
    token_env: EnvironmentName
    log_hosts: tuple[str, ...] = ()

    def open(self, host: Host) -> Tools:
        http = open_http(self, host, headers=HEADERS, elsewhere=frozenset(self.log_hosts))
        return hosted_tools(self.name, GitHub(http), self.services)
