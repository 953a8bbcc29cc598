"""GitHub, REST API: https://docs.github.com/en/rest/actions, …/rest/commits/commits, …/rest/deployments/deployments"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import quote

from pydantic import AwareDatetime, BaseModel, Field, TypeAdapter
from yarl import URL

from adapters.http import Http
from adapters.tools.ci import FAILED, MAX_RUNS, BuildLink, Run, Step, page_of, same
from adapters.tools.hosted_changes import COMMITS, MAX_COMMITS, MAX_DEPLOYMENTS, ChangedFile, Deployment, with_files
from adapters.tools.parts import kept
from core.ports import Change, TimeWindow

JOBS = 100  # per run; the maximum of one response
_PAGE = re.compile(r"(?P<project>[^/]+/[^/]+)/actions/runs/(?P<run>\d+)(?:/.*?job/(?P<job>\d+))?(?:/.*)?")


class _Runs(BaseModel):
    workflow_runs: list[Run]


class _Step(BaseModel):
    name: str
    conclusion: str | None = None


class _Job(_Step):
    id: int
    steps: list[_Step] = []

    @property
    def failed_step(self) -> Step:
        step = next((step.name for step in self.steps if step.conclusion in FAILED), "")
        return Step(f"{self.name}: {step}" if step else self.name, str(self.id))


class _Jobs(BaseModel):
    jobs: list[_Job]


class _Status(BaseModel):
    state: str
    at: AwareDatetime = Field(validation_alias="created_at")


class _Whole(BaseModel):
    files: list[ChangedFile] = []


_RUN = TypeAdapter(Run)
_RUNS = TypeAdapter(_Runs)
_JOBS = TypeAdapter(_Jobs)
_WHOLE = TypeAdapter(_Whole)
_DEPLOYMENTS = TypeAdapter(list[Deployment])
_STATUSES = TypeAdapter(list[_Status])


class GitHub:
    """BuildServer and RepositoryHost for projects `owner/repository`.

    Logs are on another host, which `http.elsewhere` must allow.
    """

    def __init__(self, http: Http) -> None:
        self._http = http

    def link(self, url: URL, project: str) -> BuildLink | None:
        api = URL(self._http.url)  # of a self-hosted installation: https://HOST/api/v3
        base = URL("https://github.com") if api.host == "api.github.com" else api.origin()
        page = _PAGE.fullmatch(page_of(url, base))
        return BuildLink(page["run"], page["job"] or "") if page and same(project, page["project"]) else None

    async def run(self, project: str, link: BuildLink) -> Run:
        return await self._http.parsed(f"{_path(project)}/actions/runs/{link.run}", _RUN)

    async def runs(self, project: str, before: datetime) -> Sequence[Run]:
        created = f"<={before.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        asked = {"per_page": str(MAX_RUNS), "created": created}
        runs = (await self._http.parsed(f"{_path(project)}/actions/runs", _RUNS, asked)).workflow_runs
        return [run for run in runs if run.at < before][:MAX_RUNS]

    async def failed_steps(self, project: str, run: Run) -> list[Step]:
        path = f"{_path(project)}/actions/runs/{run.id}/jobs"
        jobs = (await self._http.parsed(path, _JOBS, {"per_page": str(JOBS)})).jobs
        return [job.failed_step for job in jobs if job.conclusion in FAILED]

    async def log(self, project: str, run: Run, step: Step, last: int) -> str:
        return await self._http.text(f"{_path(project)}/actions/jobs/{step.job}/logs", last=last)

    async def commits(self, project: str, window: TimeWindow) -> list[Change]:
        asked = {"since": window.start.isoformat(), "until": window.end.isoformat(), "per_page": str(MAX_COMMITS)}
        return [each.change for each in await self._http.parsed(f"{_path(project)}/commits", COMMITS, asked)]

    async def deployments(self, project: str, window: TimeWindow) -> list[Change]:
        asked = {"per_page": str(MAX_DEPLOYMENTS)}
        found = await self._http.parsed(f"{_path(project)}/deployments", _DEPLOYMENTS, asked)
        created = [each for each in found if each.at < window.end]
        return await kept(
            self._http.system, [(f"deployment {each.id}", self._succeeded(project, each)) for each in created]
        )

    async def _succeeded(self, project: str, deployment: Deployment) -> list[Change]:
        """Return the deployment at the time of its first success; nothing if it has none."""
        address = f"{_path(project)}/deployments/{deployment.id}/statuses"
        statuses = await self._http.parsed(address, _STATUSES, {"per_page": "100"})
        at = min((each.at for each in statuses if each.state == "success"), default=None)
        return [replace(deployment.change, at=at)] if at else []

    async def with_diff(self, project: str, commit: Change) -> Change:
        whole = await self._http.parsed(f"{_path(project)}/commits/{quote(commit.id)}", _WHOLE)
        return with_files(commit, whole.files)


def _path(project: str) -> str:
    return f"repos/{quote(project, safe='/')}"
