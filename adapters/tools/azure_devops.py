"""Azure DevOps, REST API version 7.1: https://learn.microsoft.com/rest/api/azure/devops/build/ and …/devops/git/commits/"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Generic, Literal, TypeVar
from urllib.parse import quote

from pydantic import AliasChoices, AliasPath, BaseModel, Field, TypeAdapter
from yarl import URL

from adapters.edge import Items, Moment, typed
from adapters.http import Http
from adapters.section import EnvironmentName, Host, Url
from adapters.tools.ci import (
    FAILED,
    MAX_COMMITS,
    MAX_DETAIL,
    MAX_RUNS,
    MAX_TITLE,
    BuildLink,
    BuildServer,
    ChangedFile,
    Commit,
    Run,
    RunStep,
    hosted_tools,
    page_of,
    same,
    with_files,
)
from adapters.tools.section import Tools, ToolSection, chosen, detailed, open_http
from core.model.errors import ToolUnavailable
from core.ports import Change, Partial, TimeWindow
from core.rca.build_log import ENDED, build_end

VERSION = {"api-version": "7.1"}
T = TypeVar("T")

EXPLAINED = 5  # successful runs of a window whose changes are requested
STEPS = tuple(
    tuple(pair.split())
    for pair in "Task failed,Job failed,Job abandoned,Task canceled,Job canceled,Task succeededWithIssues".split(",")
)
"""Types and results of timeline records that count as steps; the first pair that occurs is used."""
OLD_HOST = ".visualstudio.com"
PAGES = ("results", "index", "")  # of a run, below _build


class _Build(Run):
    definition: int = Field(validation_alias=AliasPath("definition", "id"))
    finished_at: Moment | None = Field(None, validation_alias="finishTime")
    requested_for: str = Field("", validation_alias=AliasPath("requestedFor", "displayName"))


class _Attempt(BaseModel):
    timelineId: str


class _Issue(BaseModel):
    type: str | None = ""
    message: str | None = ""


class _Log(BaseModel):
    id: int


class _Record(BaseModel):
    id: str
    parentId: str | None = None
    type: str | None = ""
    name: str | None = ""
    state: str | None = ""
    result: str | None = None
    issues: Items[_Issue] = []
    previousAttempts: Items[_Attempt] = []
    startTime: str | None = None
    log: _Log | None = None

    @property
    def outcome(self) -> str:
        """Return the result; a job that took too long or lost its agent is cancelled, and only its issues say why."""
        end = build_end("", self.stated) if self.result == "canceled" else None
        return "failed" if end and end.end in ENDED else self.result or self.state or "unknown"

    @property
    def stated(self) -> str:
        return "\n".join(issue.message or "" for issue in self.issues if issue.type != "warning")


class _Timeline(BaseModel):
    records: Items[_Record] = []


class _List(BaseModel, Generic[T]):
    value: Items[T] = Field(validation_alias=AliasChoices("value", "changes"))


_BUILD = TypeAdapter(_Build)
_BUILDS = TypeAdapter(_List[_Build])
_TIMELINE = TypeAdapter(_Timeline | None)
_LOG = TypeAdapter(_List[str])
_COMMITS = TypeAdapter(_List[Commit])
_FILES = TypeAdapter(_List[ChangedFile])


class AzureDevOps(BuildServer):
    """BuildServer and RepositoryHost for pipelines as `PROJECT/ID`, where ID is that of the pipeline's definition.

    A successful run is a deployment of what was committed since the run before it. Commits have their files but no diff,
    because the API has none.
    """

    def __init__(self, http: Http) -> None:
        self._http = http

    def link(self, url: URL, project: str) -> BuildLink | None:
        run, page = url.query.get("buildId", ""), page_of(_current(url), _current(URL(self._http.url)))
        pages = [f"{project.rpartition('/')[0]}/_build/{name}" for name in PAGES]
        if not any(same(each, page) for each in pages) or not (run.isascii() and run.isdecimal()):
            return None
        return BuildLink(run, url.query.get("t") or url.query.get("j") or url.query.get("s") or "")

    async def run(self, project: str, link: BuildLink) -> Run | None:
        build = await self._http.parsed(f"{_builds(project)}/{link.run}", _BUILD, VERSION)
        return build if str(build.definition) == project.rpartition("/")[2] else None

    async def runs(self, project: str, before: datetime) -> Sequence[Run]:
        return await self._runs(project, before)

    async def steps(self, project: str, run: Run) -> list[RunStep]:
        return _steps(await self._timeline(project, run), "")

    async def step(self, project: str, run: Run, job: str) -> RunStep | None:
        latest = await self._timeline(project, run)
        if job in latest:
            return _step(latest, job)
        for earlier in dict.fromkeys(each.timelineId for record in latest.values() for each in record.previousAttempts):
            records = await self._timeline(project, run, f"/{quote(earlier, safe='')}")
            if job in records:
                return _step(records, job)
        return None

    async def _timeline(self, project: str, run: Run, part: str = "") -> dict[str, _Record]:
        timeline = await self._http.parsed(f"{_builds(project)}/{run.id}/timeline{part}", _TIMELINE, VERSION)
        return {record.id: record for record in timeline.records} if timeline is not None else {}

    async def log(self, project: str, run: Run, step: RunStep, last: int) -> str:
        if not step.log:
            return ""
        log = await self._http.parsed(f"{_builds(project)}/{run.id}/logs/{step.log}", _LOG, VERSION)
        return "\n".join(log.value)[-last:]

    async def commits(self, project: str, window: TimeWindow) -> list[Change]:
        runs = await self._runs(project, window.end)
        first = next((number for number, run in enumerate(runs) if run.at < window.start), len(runs) - 1)
        if first < 0:
            return []
        newest, before = runs[0], runs[first]
        if newest is before:
            commits = await self._changes(project, f"builds/{newest.id}/changes", {})
        else:
            commits = await self._changes(project, "changes", {"fromBuildId": before.id, "toBuildId": newest.id})
        return typed(commits, lambda commit: commit.change)

    async def deployments(self, project: str, window: TimeWindow) -> list[Change]:
        runs = [run for run in await self._runs(project, window.end) if run.result == "succeeded"]
        inside = [run for run in runs if window.start <= (run.finished_at or run.at) < window.end]
        bare = [_deployment(run, []) for run in inside]
        read = chosen(inside, EXPLAINED, "changes of runs", lambda run: run.id)
        shipped = await detailed(
            "",
            [
                (f"changes of {each.id}", each, self._shipped(project, run))
                for each, run in zip(bare, read, strict=False)
            ],
        )
        return Partial([*shipped, *bare[EXPLAINED:]], (*shipped.gaps, *read.gaps))

    async def _shipped(self, project: str, run: _Build) -> Change:
        return _deployment(run, await self._changes(project, f"builds/{run.id}/changes", {}))

    async def with_diff(self, project: str, commit: Change) -> Change:
        """Return the commit with its files; a commit of a repository on another server unchanged."""
        try:
            page = page_of(URL(commit.url), URL(self._http.url))
        except ValueError as error:
            raise ToolUnavailable(f"{self._http.system} returned an invalid URL.") from error
        name, marker, rest = page.partition("/_git/")
        repository = rest.partition("/commit/")[0]
        if not marker or not repository:
            return commit
        path = f"{quote(name)}/_apis/git/repositories/{quote(repository)}/commits/{quote(commit.revision)}/changes"
        return with_files(commit, (await self._http.parsed(path, _FILES, VERSION)).value)

    async def _runs(self, project: str, before: datetime) -> list[_Build]:
        query = {
            "definitions": project.rpartition("/")[2],
            "maxTime": f"{before.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "queryOrder": "queueTimeDescending",
            "$top": str(MAX_RUNS),
        }
        runs = (await self._http.parsed(_builds(project), _BUILDS, query | VERSION)).value
        return [run for run in runs if run.at < before][:MAX_RUNS]

    async def _changes(self, project: str, path: str, query: dict[str, str]) -> list[Commit]:
        address = f"{_builds(project).removesuffix('builds')}{path}"
        return (await self._http.parsed(address, _COMMITS, query | {"$top": str(MAX_COMMITS)} | VERSION)).value


def _builds(project: str) -> str:
    return f"{quote(project.rpartition('/')[0], safe='')}/_apis/build/builds"


def _steps(records: dict[str, _Record], within: str) -> list[RunStep]:
    """Return the steps within a record; all for an empty one."""
    inside = [record for record in records.values() if not within or within in _ancestors(record, records)]
    for pair in STEPS:
        if failures := [each for each in inside if (each.type, each.outcome) == pair]:
            return [_as_step(each, records) for each in sorted(failures, key=lambda each: each.startTime or "")]
    return []


def _step(records: dict[str, _Record], linked: str) -> RunStep:
    """Return a task that did not pass, or else what did not pass within its job, or within a job or stage."""
    record = records[linked]
    if record.type == "Task" and record.outcome not in FAILED:
        record = records.get(record.parentId or "", record)
    return next(iter(_steps(records, record.id)), _as_step(record, records))


def _ancestors(record: _Record, records: dict[str, _Record]) -> list[str]:
    """Return the ids of the records that contain a record, nearest first."""
    ids: list[str] = []
    while (parent := record.parentId or "") in records and parent not in ids:
        ids.append(parent)
        record = records[parent]
    return ids


def _as_step(record: _Record, records: dict[str, _Record]) -> RunStep:
    """Return a step named after itself and its job; its stage and phase seldom have a name of their own."""
    job = records.get(record.parentId or "")
    name = f"{job.name}: {record.name}" if job and job.type == "Job" else f"{record.name}"
    stated = "\n".join(part.stated for part in (record, job) if part)
    return RunStep(name, record.id, str(record.log.id) if record.log else "", record.outcome, stated)


def _current(url: URL) -> URL:
    """Return the address on dev.azure.com of a page at an organization's earlier address."""
    host = url.host or ""
    if not host.endswith(OLD_HOST):
        return url
    path = url.path.removeprefix("/DefaultCollection")
    return URL.build(scheme="https", host="dev.azure.com", path=f"/{host.removesuffix(OLD_HOST)}{path}")


def _deployment(run: _Build, commits: Sequence[Commit]) -> Change:
    shipped = [commit.change for commit in commits]
    return Change(
        id=f"run-{run.id}",
        at=run.finished_at or run.at,
        kind="deploy",
        service="",
        author=run.requested_for,
        title=f"{run.name} {run.title} of {(run.branch or '').removeprefix('refs/heads/')}"[:MAX_TITLE],
        detail="\n".join(change.title for change in shipped)[:MAX_DETAIL],
        url=run.url,
        revision=run.commit,
        commits=tuple(change.revision for change in shipped),
    )


class AzureDevOpsTool(ToolSection):
    """Azure DevOps. `url` names the organization or collection; `services` maps a service to the pipeline that ships it.

    A pipeline is `PROJECT/ID`, with the number that its address shows as `definitionId`. `token_env` names the variable
    with a personal access token that may read builds and code.
    """

    kind: Literal["azure_devops"]
    name: str = "Azure DevOps"
    url: Url
    services: Annotated[dict[str, Annotated[str, Field(pattern=r"^[^/]+/\d+$")]], Field(min_length=1)]
    token_env: EnvironmentName

    def open(self, host: Host) -> Tools:
        return hosted_tools(self.name, AzureDevOps(open_http(self, host, user="")), self.services)
