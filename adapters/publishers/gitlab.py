"""GitLab: issues, and Markdown files that are proposed as merge requests.

https://docs.gitlab.com/api/issues/ · https://docs.gitlab.com/api/commits/ ·
https://docs.gitlab.com/api/merge_requests/ · https://docs.gitlab.com/api/branches/
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter

from adapters.http import Http, parsed_or_none
from adapters.publishers.section import Project, PublisherSection
from adapters.section import Host, Url
from core.incidents.postmortem import markdown_file
from core.model.errors import SourceUnavailable
from core.model.incident import Filed, FilingKind, Report

REPORTER, DEVELOPER = 20, 30  # access levels of https://docs.gitlab.com/api/access_requests/


class _Names(BaseModel):
    full: str


class _Item(BaseModel):
    web_url: str
    references: _Names
    description: str | None = ""


class _Access(BaseModel):
    access_level: int = 0


class _AccessOf(BaseModel):
    project_access: _Access | None = None
    group_access: _Access | None = None


class _Project(BaseModel):
    default_branch: str | None = None
    permissions: _AccessOf = _AccessOf()

    @property
    def level(self) -> int:
        access = (self.permissions.project_access, self.permissions.group_access)
        return max((each.access_level for each in access if each is not None), default=0)


_ITEM, _ITEMS, _PROJECT = TypeAdapter(_Item), TypeAdapter(list[_Item]), TypeAdapter(_Project)
_ANYTHING = TypeAdapter(dict[str, object])


def _filed(item: _Item) -> Filed:
    return Filed(item.references.full, item.web_url)


@dataclass(frozen=True, slots=True)
class GitLabIssues:
    """Issues of a project, named by its path including groups."""

    http: Http
    project: str
    settles_after: float = 0.0

    async def find(self, report: Report) -> Filed | None:
        query = {"search": report.marker, "in": "description", "scope": "all", "state": "all"}
        issues = await self.http.parsed(f"{_path(self.project)}/issues", _ITEMS, query)
        return next((_filed(item) for item in issues if report.marker in (item.description or "")), None)

    async def file(self, report: Report) -> Filed:
        value = {"title": report.title, "description": report.body}
        return _filed(await self.http.send("POST", f"{_path(self.project)}/issues", value, _ITEM))

    async def check(self) -> None:
        await _require(REPORTER, self.http, self.project)


@dataclass(frozen=True, slots=True)
class GitLabFiles:
    """Markdown files in a folder of a project, each proposed as a merge request into its default branch.

    The name of the proposing branch follows from the report, so that every step may be repeated.
    """

    http: Http
    project: str
    folder: str
    settles_after: float = 0.0

    async def find(self, report: Report) -> Filed | None:
        query = {"source_branch": _branch(report), "state": "all"}
        requests = await self.http.parsed(f"{_path(self.project)}/merge_requests", _ITEMS, query)
        return _filed(requests[0]) if requests else None

    async def file(self, report: Report) -> Filed:
        base = (await self.http.parsed(_path(self.project), _PROJECT)).default_branch or "main"
        branch, path = quote(_branch(report), safe=""), report.path(self.folder)
        has_branch = await self._has(f"branches/{branch}")
        has_file = has_branch and await self._has(f"files/{quote(path, safe='')}?ref={branch}")
        written = {"action": "update" if has_file else "create", "content": markdown_file(report)}
        commit = {
            "branch": _branch(report),
            "commit_message": report.title,
            "actions": [{**written, "file_path": path}],
            **({} if has_branch else {"start_branch": base}),
        }
        await self.http.send("POST", f"{_path(self.project)}/repository/commits", commit, _ANYTHING)
        value = {
            "source_branch": _branch(report),
            "target_branch": base,
            "title": report.title,
            "description": report.footer,
        }
        return _filed(await self.http.send("POST", f"{_path(self.project)}/merge_requests", value, _ITEM))

    async def check(self) -> None:
        await _require(DEVELOPER, self.http, self.project)

    async def _has(self, address: str) -> bool:
        return await parsed_or_none(self.http, f"{_path(self.project)}/repository/{address}", _ANYTHING) is not None


async def _require(level: int, http: Http, project: str) -> None:
    if (await http.parsed(_path(project), _PROJECT)).level < level:
        raise SourceUnavailable(f"The token may not write to the project {project}: its role there is too low.")


def _path(project: str) -> str:
    return f"api/v4/projects/{quote(project, safe='')}"


def _branch(report: Report) -> str:
    return f"plumbline/{report.marker}"


class GitLabIssueSection(PublisherSection):
    """Issues of a GitLab project, named by its path including groups."""

    kind: Literal["gitlab_issue"]
    url: Url = "https://gitlab.com"
    project: Project

    def open(self, host: Host) -> GitLabIssues:
        return GitLabIssues(self.http(host), self.project)


class GitLabFileSection(PublisherSection):
    """Markdown files in a GitLab project, each proposed as a merge request into the default branch."""

    filed: ClassVar[FilingKind] = FilingKind.POSTMORTEM

    kind: Literal["gitlab_file"]
    url: Url = "https://gitlab.com"
    project: Project
    folder: str = "postmortems"

    def open(self, host: Host) -> GitLabFiles:
        return GitLabFiles(self.http(host), self.project, self.folder)
