"""GitHub Actions, REST API: https://docs.github.com/en/rest/actions"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from urllib.parse import quote

from pydantic import AwareDatetime, BaseModel, TypeAdapter
from yarl import URL

from adapters.http import Http
from adapters.tools.ci import MAX_RUNS, BuildLink, Run, Step, page_of

FAILED = frozenset({"failure", "timed_out", "startup_failure"})
JOBS = 100  # per run; the maximum of one response
_PAGE = re.compile(r"(?P<project>[^/]+/[^/]+)/actions/runs/(?P<run>\d+)(?:/.*?job/(?P<job>\d+))?(?:/.*)?")


class _Run(BaseModel):
    id: int
    name: str | None = ""
    display_title: str = ""
    head_branch: str | None = ""
    head_sha: str = ""
    status: str | None = ""
    conclusion: str | None = None
    created_at: AwareDatetime
    html_url: str = ""


class _Runs(BaseModel):
    workflow_runs: list[_Run]


class _Step(BaseModel):
    name: str
    conclusion: str | None = None


class _Job(BaseModel):
    id: int
    name: str
    conclusion: str | None = None
    steps: list[_Step] = []


class _Jobs(BaseModel):
    jobs: list[_Job]


_RUN = TypeAdapter(_Run)
_RUNS = TypeAdapter(_Runs)
_JOBS = TypeAdapter(_Jobs)


class GitHubActions:
    """BuildServer for projects `owner/repository`. Logs are on another host, which `http.elsewhere` must allow."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def link(self, url: URL) -> BuildLink | None:
        api = URL(self._http.url)  # of a self-hosted installation: https://HOST/api/v3
        page = _PAGE.fullmatch(
            page_of(url, URL("https://github.com") if api.host == "api.github.com" else api.origin())
        )
        return BuildLink(page["project"], page["run"], page["job"] or "") if page else None

    async def run(self, project: str, link: BuildLink) -> Run:
        return _run(await self._http.parsed(f"{_path(project)}/actions/runs/{link.run}", _RUN))

    async def runs(self, project: str, before: datetime) -> list[Run]:
        created = f"<={before.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        answer = await self._http.parsed(
            f"{_path(project)}/actions/runs", _RUNS, {"per_page": str(MAX_RUNS), "created": created}
        )
        return [_run(run) for run in answer.workflow_runs if run.created_at < before][:MAX_RUNS]

    async def failed_steps(self, project: str, run: Run) -> list[Step]:
        path = f"{_path(project)}/actions/runs/{run.id}/jobs"
        answer = await self._http.parsed(path, _JOBS, {"per_page": str(JOBS)})
        failed = [job for job in answer.jobs if job.conclusion in FAILED]
        return [Step(_named(job), str(job.id)) for job in failed]

    async def log(self, project: str, run: Run, step: Step, last: int) -> str:
        return await self._http.text(f"{_path(project)}/actions/jobs/{step.job}/logs", last=last)


def _path(project: str) -> str:
    return f"repos/{quote(project, safe='/')}"


def _run(run: _Run) -> Run:
    result = run.conclusion or run.status or "unknown"
    title = " ".join(part for part in (run.name, run.display_title) if part)
    return Run(
        str(run.id), title, run.head_branch or "", run.head_sha, run.created_at, result, result in FAILED, run.html_url
    )


def _named(job: _Job) -> str:
    step = next((step.name for step in job.steps if step.conclusion in FAILED), "")
    return f"{job.name}: {step}" if step else job.name
