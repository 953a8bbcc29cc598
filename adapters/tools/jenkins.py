"""Jenkins, remote access API: https://www.jenkins.io/doc/book/using/remote-access-api/"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated
from urllib.parse import quote

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter
from yarl import URL

from adapters.http import Http
from adapters.tools.ci import MAX_RUNS, BuildLink, Run, Step, page_of, same

CONSOLE = "console"  # the only log of a build


def _built(actions: object) -> str:
    """Return the commit among the actions of a build; empty if there is none."""
    each = (
        [action.get("lastBuiltRevision") for action in actions if isinstance(action, dict)]
        if isinstance(actions, list)
        else []
    )
    return next((str(revision["SHA1"]) for revision in each if isinstance(revision, dict) and "SHA1" in revision), "")


class _Build(Run):
    status: str | None = "RUNNING"
    commit: Annotated[str, BeforeValidator(_built)] = Field("", validation_alias="actions")


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

    def link(self, url: URL, project: str) -> BuildLink | None:
        page = _PAGE.fullmatch(page_of(url, URL(self._http.url)))
        return BuildLink(page["run"]) if page and same(project, "/".join(page["jobs"].split("/")[1::2])) else None

    async def run(self, project: str, link: BuildLink) -> Run:
        return await self._http.parsed(f"{_path(project)}/{link.run}/api/json", _BUILD, {"tree": _FIELDS})

    async def runs(self, project: str, before: datetime) -> Sequence[Run]:
        job = await self._http.parsed(f"{_path(project)}/api/json", _JOB, {"tree": _TREE})
        return [run for run in job.builds if run.at < before][:MAX_RUNS]

    async def failed_steps(self, project: str, run: Run) -> list[Step]:
        """Return one step, because a build has one log for all stages."""
        return [Step(CONSOLE, CONSOLE)]

    async def log(self, project: str, run: Run, step: Step, last: int) -> str:
        return await self._http.text(f"{_path(project)}/{run.id}/consoleText", last=last)


def _path(project: str) -> str:
    return "/".join(f"job/{quote(part, safe='')}" for part in project.split("/") if part)
