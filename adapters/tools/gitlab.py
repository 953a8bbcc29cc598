"""GitLab, REST API: https://docs.gitlab.com/api/pipelines/, …/api/jobs/, …/api/commits/ and …/api/deployments/"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import quote

from pydantic import AliasPath, BaseModel, Field, TypeAdapter
from yarl import URL

from adapters.edge import Items, Moment, typed
from adapters.http import Http
from adapters.section import EnvironmentName, Host, Url
from adapters.tools.ci import (
    COMMITS,
    FILES,
    MAX_COMMITS,
    MAX_DEPLOYMENTS,
    MAX_RUNS,
    BuildLink,
    BuildServer,
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
from adapters.tools.section import Named, Tools, ToolSection, open_http
from core.ports import Change, Partial, TimeWindow

MAX_CHILD_LEVELS = 2  # of child pipelines, the maximum of GitLab
MAX_CHILDREN = 5  # failed child pipelines whose jobs are requested
_PAGE = re.compile(r"(?P<project>.+?)/(?:-/)?(?:pipelines/(?P<run>\d+)|(?:jobs|builds)/(?P<job>\d+))(?:/.*)?")


class _Job(BaseModel):
    id: int
    name: str
    stage: str = ""
    status: str = "failed"
    pipeline: int = Field(0, validation_alias=AliasPath("pipeline", "id"))
    allow_failure: bool = False
    failure_reason: str | None = None

    @property
    def step(self) -> RunStep:
        reason = f" ({self.failure_reason})" if self.failure_reason else ""
        name = f"{self.stage}: {self.name}{reason}" if self.stage else f"{self.name}{reason}"
        return RunStep(name, str(self.id), result=self.status, stated=self.failure_reason or "")


class _Pipeline(BaseModel):
    id: int
    project: int = Field(0, validation_alias="project_id")


class _Trigger(_Job):
    """A job that starts another pipeline, which may be of another project."""

    within: _Pipeline = Field(validation_alias="pipeline")
    started: _Pipeline | None = Field(None, validation_alias="downstream_pipeline")

    @property
    def child(self) -> int | None:
        """Return the pipeline of the same project that failed; None for an optional one or another project's."""
        is_child = self.started is not None and self.started.project == self.within.project
        return self.started.id if self.started is not None and is_child and not self.allow_failure else None


class _Deployment(Deployment):
    at: Moment = Field(validation_alias="updated_at")


_JOB = TypeAdapter(_Job)
_RUN = TypeAdapter(Run)
_RUNS = TypeAdapter(Items[Run])
_JOBS = TypeAdapter(Items[_Job])
_TRIGGERS = TypeAdapter(Items[_Trigger])
_DEPLOYMENTS = TypeAdapter(Items[_Deployment])


class GitLab(BuildServer):
    """BuildServer and RepositoryHost for projects by their path with namespace, or their number."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def link(self, url: URL, project: str) -> BuildLink | None:
        page = _PAGE.fullmatch(page_of(url, URL(self._http.url)))
        return BuildLink(page["run"] or "", page["job"] or "") if page and same(project, page["project"]) else None

    async def run(self, project: str, link: BuildLink) -> Run:
        number = link.run or (await self._job(project, link.job)).pipeline
        return await self._http.parsed(f"{_path(project)}/pipelines/{number}", _RUN)

    async def runs(self, project: str, before: datetime) -> Sequence[Run]:
        created = f"{before.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        query = {"per_page": str(MAX_RUNS), "created_before": created, "order_by": "id", "sort": "desc"}
        runs = await self._http.parsed(f"{_path(project)}/pipelines", _RUNS, query)
        return [run for run in runs if run.at < before][:MAX_RUNS]

    async def steps(self, project: str, run: Run) -> list[RunStep]:
        """Return the jobs that failed in their latest attempt; those of child pipelines if none did.

        One that took too long is among them.
        """
        pipelines = [run.id]
        for _ in range(1 + MAX_CHILD_LEVELS):
            if steps := [step for each in pipelines for step in await self._failed_jobs(project, each)]:
                return steps
            pipelines = [child for each in pipelines for child in await self._failed_children(project, each)]
        return []

    async def _failed_jobs(self, project: str, pipeline: str) -> list[RunStep]:
        path = f"{_path(project)}/pipelines/{pipeline}/jobs"
        jobs = await all_pages(lambda page: self._http.parsed(path, _JOBS, page | {"scope[]": "failed"}))
        return [job.step for job in jobs if not job.allow_failure]

    async def _failed_children(self, project: str, pipeline: str) -> list[str]:
        path = f"{_path(project)}/pipelines/{pipeline}/bridges"
        triggers = await all_pages(lambda page: self._http.parsed(path, _TRIGGERS, page | {"scope[]": "failed"}))
        return [str(each.child) for each in triggers if each.child is not None][:MAX_CHILDREN]

    async def step(self, project: str, run: Run, job: str) -> RunStep:
        return (await self._job(project, job)).step

    async def _job(self, project: str, job: str) -> _Job:
        return await self._http.parsed(f"{_path(project)}/jobs/{job}", _JOB)

    async def log(self, project: str, run: Run, step: RunStep, last: int) -> str:
        return await self._http.text(f"{_path(project)}/jobs/{step.job}/trace", last=last)

    async def commits(self, project: str, window: TimeWindow) -> list[Change]:
        query = {"since": window.start.isoformat(), "until": window.end.isoformat(), "per_page": str(MAX_COMMITS)}
        commits = await self._http.parsed(f"{_path(project)}/repository/commits", COMMITS, query)
        return typed(commits, lambda each: each.change)

    async def deployments(self, project: str, window: TimeWindow) -> list[Change]:
        query = {
            "updated_after": window.start.isoformat(),
            "updated_before": window.end.isoformat(),
            "order_by": "updated_at",
            "sort": "desc",
            "status": "success",
            "per_page": str(MAX_DEPLOYMENTS),
        }
        deployments = typed(
            await self._http.parsed(f"{_path(project)}/deployments", _DEPLOYMENTS, query), lambda each: each.change
        )
        return Partial(deployments, (*deployments.gaps, *not_listed(deployments, MAX_DEPLOYMENTS)))

    async def with_diff(self, project: str, commit: Change) -> Change:
        path = f"{_path(project)}/repository/commits/{quote(commit.id)}/diff"
        return with_files(commit, await self._http.parsed(path, FILES))


def _path(project: str) -> str:
    return f"api/v4/projects/{quote(project, safe='')}"


class GitLabCiTool(ToolSection):
    """GitLab CI. `services` maps a service to its project path, including groups."""

    kind: Literal["gitlab_ci"]
    name: str = "GitLab CI"
    url: Url = "https://gitlab.com"
    services: Named
    token_env: EnvironmentName

    def open(self, host: Host) -> Tools:
        return hosted_tools(self.name, GitLab(open_http(self, host)), self.services)
