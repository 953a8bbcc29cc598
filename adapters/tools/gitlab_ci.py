"""GitLab CI, REST API: https://docs.gitlab.com/api/pipelines/ and https://docs.gitlab.com/api/jobs/"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from urllib.parse import quote

from pydantic import AwareDatetime, BaseModel, TypeAdapter
from yarl import URL

from adapters.http import Http
from adapters.tools.ci import MAX_RUNS, BuildLink, Run, Step, page_of

JOBS = 100  # per pipeline; the maximum of one response
_PAGE = re.compile(r"(?P<project>.+?)/-/(?:pipelines/(?P<run>\d+)|jobs/(?P<job>\d+))(?:/.*)?")


class _Pipeline(BaseModel):
    id: int
    status: str
    ref: str | None = ""
    sha: str = ""
    source: str | None = ""
    created_at: AwareDatetime
    web_url: str = ""


class _Job(BaseModel):
    id: int
    name: str
    stage: str = ""
    allow_failure: bool = False
    failure_reason: str | None = None


class _Reference(BaseModel):
    id: int


class _JobOf(BaseModel):
    pipeline: _Reference


_JOB = TypeAdapter(_JobOf)
_PIPELINE = TypeAdapter(_Pipeline)
_PIPELINES = TypeAdapter(list[_Pipeline])
_JOBS = TypeAdapter(list[_Job])


class GitLabCi:
    """BuildServer for projects by their path with namespace, or their number."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def link(self, url: URL) -> BuildLink | None:
        page = _PAGE.fullmatch(page_of(url, URL(self._http.url)))
        return BuildLink(page["project"], page["run"] or "", page["job"] or "") if page else None

    async def run(self, project: str, link: BuildLink) -> Run:
        number = link.run
        if not number:
            number = str((await self._http.parsed(f"{_path(project)}/jobs/{link.job}", _JOB)).pipeline.id)
        return _run(await self._http.parsed(f"{_path(project)}/pipelines/{number}", _PIPELINE))

    async def runs(self, project: str, before: datetime) -> list[Run]:
        pipelines = await self._http.parsed(
            f"{_path(project)}/pipelines",
            _PIPELINES,
            {
                "per_page": str(MAX_RUNS),
                "created_before": f"{before.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
                "order_by": "id",
                "sort": "desc",
            },
        )
        return [_run(each) for each in pipelines if each.created_at < before][:MAX_RUNS]

    async def failed_steps(self, project: str, run: Run) -> list[Step]:
        jobs = await self._http.parsed(
            f"{_path(project)}/pipelines/{run.id}/jobs", _JOBS, {"per_page": str(JOBS), "scope[]": "failed"}
        )
        return [Step(_named(job), str(job.id)) for job in jobs if not job.allow_failure]

    async def log(self, project: str, run: Run, step: Step, last: int) -> str:
        return await self._http.text(f"{_path(project)}/jobs/{step.job}/trace", last=last)


def _path(project: str) -> str:
    return f"api/v4/projects/{quote(project, safe='')}"


def _run(pipeline: _Pipeline) -> Run:
    return Run(
        str(pipeline.id),
        f"pipeline by {pipeline.source or 'unknown'}",
        pipeline.ref or "",
        pipeline.sha,
        pipeline.created_at,
        pipeline.status,
        pipeline.status == "failed",
        pipeline.web_url,
    )


def _named(job: _Job) -> str:
    reason = f" ({job.failure_reason})" if job.failure_reason else ""
    return f"{job.stage}: {job.name}{reason}" if job.stage else f"{job.name}{reason}"
