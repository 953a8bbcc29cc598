"""Jenkins, remote access API: https://www.jenkins.io/doc/book/using/remote-access-api/"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter
from yarl import URL

from adapters.http import Http
from adapters.tools.ci import MAX_RUNS, BuildLink, Run, Step, page_of

FAILED = frozenset({"FAILURE", "UNSTABLE"})
CONSOLE = "console"  # the only log of a build


class _Revision(BaseModel):
    SHA1: str = ""


class _Action(BaseModel):
    lastBuiltRevision: _Revision | None = None


class _Build(BaseModel):
    number: int
    result: str | None = None
    timestamp: int  # milliseconds since 1970
    url: str = ""
    displayName: str = ""
    actions: list[_Action | None] = []


class _Job(BaseModel):
    builds: list[_Build]


_BUILD = TypeAdapter(_Build)
_JOB = TypeAdapter(_Job)
_FIELDS = "number,result,timestamp,url,displayName,actions[lastBuiltRevision[SHA1]]"
_TREE = f"builds[{_FIELDS}]{{0,100}}"
_PAGE = re.compile(r"(?P<jobs>job/[^/]+(?:/job/[^/]+)*)/(?P<run>\d+)(?:/.*)?")


class Jenkins:
    """BuildServer for projects by their job path, including folders: `shop/api/main`."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def link(self, url: URL) -> BuildLink | None:
        page = _PAGE.fullmatch(page_of(url, URL(self._http.url)))
        return BuildLink("/".join(page["jobs"].split("/")[1::2]), page["run"]) if page else None

    async def run(self, project: str, link: BuildLink) -> Run:
        return _run(await self._http.parsed(f"{_path(project)}/{link.run}/api/json", _BUILD, {"tree": _FIELDS}))

    async def runs(self, project: str, before: datetime) -> list[Run]:
        job = await self._http.parsed(f"{_path(project)}/api/json", _JOB, {"tree": _TREE})
        runs = [_run(build) for build in job.builds]
        return [run for run in runs if run.at < before][:MAX_RUNS]

    async def failed_steps(self, project: str, run: Run) -> list[Step]:
        """Return one step, because a build has one log for all stages."""
        return [Step(CONSOLE, CONSOLE)]

    async def log(self, project: str, run: Run, step: Step, last: int) -> str:
        return await self._http.text(f"{_path(project)}/{run.id}/consoleText", last=last)


def _path(project: str) -> str:
    return "/".join(f"job/{quote(part, safe='')}" for part in project.split("/") if part)


def _run(build: _Build) -> Run:
    commit = next(
        (action.lastBuiltRevision.SHA1 for action in build.actions if action and action.lastBuiltRevision), ""
    )
    at = datetime.fromtimestamp(build.timestamp / 1000, UTC)
    result = build.result or "RUNNING"
    return Run(str(build.number), build.displayName, "", commit, at, result, result in FAILED, build.url)
