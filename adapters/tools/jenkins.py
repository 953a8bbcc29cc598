"""Jenkins, remote access API: https://www.jenkins.io/doc/book/using/remote-access-api/"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal
from urllib.parse import quote, unquote

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter
from yarl import URL

from adapters.edge import Items
from adapters.http import Http
from adapters.section import EnvironmentName, Host, Url
from adapters.tools.ci import MAX_RUNS, BuildLink, Builds, BuildServer, Run, RunStep, page_of, same
from adapters.tools.section import Named, Tools, ToolSection, open_http

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


class _Branch(BaseModel):
    name: str
    builds: Items[_Build] = []


class _Job(BaseModel):
    """A job, or the branches of a multibranch project."""

    builds: Items[_Build] = []
    jobs: Items[_Branch] = []


_BUILD = TypeAdapter(_Build)
_JOB = TypeAdapter(_Job)
_FIELDS = "number,result,timestamp,url,displayName,actions[lastBuiltRevision[SHA1]]"
_TREE = f"builds[{_FIELDS}]{{0,100}},jobs[name,builds[{_FIELDS}]{{0,20}}]"
_BUILD_NAME = re.compile(r"\d+|last\w*Build", re.ASCII)
ONLY_SHOWN_IN = frozenset({"view", "user"})  # begin a pair in the address of a page, but not in that of a job


class Jenkins(BuildServer):
    """BuildServer for projects by their job path, including folders: `shop/api/main`.

    A build of a multibranch project has its branch in its id: `main/42`.
    """

    def __init__(self, http: Http) -> None:
        self._http = http

    def link(self, url: URL, project: str) -> BuildLink | None:
        base = URL(self._http.url)
        if not page_of(url, base):
            return None
        parts = url.raw_path[len(base.raw_path.rstrip("/")) :].strip("/").split("/")
        for job, build in _builds_at([unquote(part) for part in parts]):
            parent, _, branch = job.rpartition("/")
            if same(project, job):
                return BuildLink(build)
            if same(project, parent) and branch not in (".", ".."):
                return BuildLink(f"{branch}/{build}")
        return None

    async def run(self, project: str, link: BuildLink) -> Run:
        build = await self._http.parsed(f"{_build_path(project, link.run)}/api/json", _BUILD, {"tree": _FIELDS})
        return _of_branch(build, link.run.rpartition("/")[0])

    async def runs(self, project: str, before: datetime) -> Sequence[Run]:
        job = await self._http.parsed(f"{_path(project)}/api/json", _JOB, {"tree": _TREE})
        runs = [*job.builds, *(_of_branch(build, branch.name) for branch in job.jobs for build in branch.builds)]
        return sorted((run for run in runs if run.at < before), key=lambda run: run.at, reverse=True)[:MAX_RUNS]

    async def steps(self, project: str, run: Run) -> list[RunStep]:
        """Return one step, because a build has one log for all stages."""
        return [await self.step(project, run, CONSOLE)]

    async def step(self, project: str, run: Run, job: str) -> RunStep:
        return RunStep(CONSOLE, CONSOLE, result=run.result)

    async def log(self, project: str, run: Run, step: RunStep, last: int) -> str:
        return await self._http.text(f"{_build_path(project, run.id)}/consoleText", last=last)


def _path(project: str) -> str:
    return "/".join(f"job/{quote(part, safe='')}" for part in project.split("/") if part)


def _build_path(project: str, build: str) -> str:
    branch, _, name = build.rpartition("/")
    return f"{_path(f'{project}/{branch}')}/{name}"


def _of_branch(build: _Build, branch: str) -> _Build:
    return build.model_copy(update={"id": f"{branch}/{build.id}"}) if branch else build


def _builds_at(parts: Sequence[str]) -> list[tuple[str, str]]:
    """Return the paths of the jobs that a page may belong to, likeliest first, with the name of the build."""
    if parts[:2] == ["blue", "organizations"] and parts[4:5] == ["detail"]:
        return _blue_ocean(parts)
    names, rest = list[str](), iter(parts)
    for part in rest:
        if part == "job":
            names.append(next(rest, ""))
        elif part in ONLY_SHOWN_IN:
            next(rest, "")
        elif part != "my-views":
            return [("/".join(names), part)] if _BUILD_NAME.fullmatch(part) else []
    return []


def _blue_ocean(parts: Sequence[str]) -> list[tuple[str, str]]:
    """Return the jobs of a page of Blue Ocean, where the branch of a plain job is its own name."""
    job, branch, build = parts[3], "".join(parts[5:6]).replace("/", "%2F"), "".join(parts[6:7])
    plain = [(job, build)] if job.rpartition("/")[2] == branch else []
    return [*plain, (f"{job}/{branch}", build)] if build.isdecimal() else []


class JenkinsTool(ToolSection):
    """Jenkins. `services` maps a service to its job path, including folders. `token_env` names the token of `user`."""

    kind: Literal["jenkins"]
    name: str = "Jenkins"
    url: Url
    services: Named
    user: str
    token_env: EnvironmentName

    def open(self, host: Host) -> Tools:
        return Tools(toolboxes=(Builds(self.name, Jenkins(open_http(self, host, user=self.user)), self.services),))
