"""Commits and deployments of repositories on GitHub and GitLab, REST APIs.

https://docs.github.com/en/rest/commits/commits and https://docs.github.com/en/rest/deployments/deployments
https://docs.gitlab.com/api/commits/ and https://docs.gitlab.com/api/deployments/
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import quote

from pydantic import AwareDatetime, BaseModel, TypeAdapter

from adapters.http import Http
from core.ports import Change, TimeWindow

MAX_COMMITS = 50  # latest commits of a repository within a window
MAX_DEPLOYMENTS = 50
MAX_DIFFS = 12  # latest commits of a repository whose diffs are read
MAX_DIFF = 20_000  # characters per commit
MAX_FILES = 200
MAX_TITLE = 500  # characters
MAX_DETAIL = 4_000


class RepositoryHost(Protocol):
    """A repository server. Its results name no service. Raises ToolUnavailable."""

    async def commits(self, project: str, window: TimeWindow) -> list[Change]: ...

    async def deployments(self, project: str, window: TimeWindow) -> list[Change]: ...

    async def with_diff(self, project: str, commit: Change) -> Change:
        """Return the commit with its files and diff."""
        ...


class HostedChanges:
    """ChangeReader over the repositories of `services`: service → project.

    A commit in a repository that several services share names no service; its paths tell.
    """

    def __init__(self, name: str, host: RepositoryHost, services: Mapping[str, str]) -> None:
        self._name = name
        self._host = host
        self._services: dict[str, list[str]] = {}
        for service, project in services.items():
            self._services.setdefault(project, []).append(service)

    @property
    def name(self) -> str:
        return self._name

    async def changes(self, window: TimeWindow) -> list[Change]:
        found = await asyncio.gather(*(self._of(project, window) for project in self._services))
        changes = [change for each in found for change in each if window.start <= change.at < window.end]
        return sorted(changes, key=lambda change: change.at)

    async def _of(self, project: str, window: TimeWindow) -> list[Change]:
        commits, deployments = await asyncio.gather(
            self._host.commits(project, window), self._host.deployments(project, window)
        )
        commits = sorted(commits, key=lambda commit: commit.at)
        older, latest = commits[:-MAX_DIFFS], commits[-MAX_DIFFS:]
        shown = await asyncio.gather(*(self._host.with_diff(project, commit) for commit in latest))
        owners = self._services[project]
        owner = owners[0] if len(owners) == 1 else ""
        named = [replace(change, service=owner) for change in (*older, *shown)]
        return [*named, *(replace(change, service=_deployed(change, owners)) for change in deployments)]


def _deployed(deployment: Change, owners: Sequence[str]) -> str:
    """Return the service that a deployment names, or the only one of its repository."""
    named = [owner for owner in owners if owner in f"{deployment.title} {deployment.detail}"]
    return max(named or (owners if len(owners) == 1 else [""]), key=len)


class _GitHubPerson(BaseModel):
    name: str = ""
    date: AwareDatetime


class _GitHubMessage(BaseModel):
    message: str
    author: _GitHubPerson
    committer: _GitHubPerson


class _GitHubFile(BaseModel):
    filename: str
    patch: str = ""


class _GitHubCommit(BaseModel):
    sha: str
    commit: _GitHubMessage
    html_url: str = ""
    files: list[_GitHubFile] = []


class _GitHubCreator(BaseModel):
    login: str = ""


class _GitHubDeployment(BaseModel):
    id: int
    sha: str
    ref: str = ""
    environment: str = ""
    description: str | None = ""
    created_at: AwareDatetime
    creator: _GitHubCreator | None = None


_GITHUB_COMMIT = TypeAdapter(_GitHubCommit)
_GITHUB_COMMITS = TypeAdapter(list[_GitHubCommit])
_GITHUB_DEPLOYMENTS = TypeAdapter(list[_GitHubDeployment])


@dataclass(frozen=True, slots=True)
class GitHubRepositories:
    """RepositoryHost for projects `owner/repository`."""

    http: Http

    async def commits(self, project: str, window: TimeWindow) -> list[Change]:
        asked = {"since": window.start.isoformat(), "until": window.end.isoformat(), "per_page": str(MAX_COMMITS)}
        found = await self.http.parsed(f"{self._path(project)}/commits", _GITHUB_COMMITS, asked)
        return [
            _commit(each.sha, each.commit.committer.date, each.commit.author.name, each.commit.message, each.html_url)
            for each in found
        ]

    async def deployments(self, project: str, window: TimeWindow) -> list[Change]:
        asked = {"per_page": str(MAX_DEPLOYMENTS)}
        found = await self.http.parsed(f"{self._path(project)}/deployments", _GITHUB_DEPLOYMENTS, asked)
        return [
            Change(
                id=f"deployment-{each.id}",
                at=each.created_at,
                kind="deploy",
                service="",
                author=each.creator.login if each.creator else "",
                title=f"{each.ref} to {each.environment}"[:MAX_TITLE],
                detail=(each.description or "")[:MAX_DETAIL],
                revision=each.sha,
            )
            for each in found
        ]

    async def with_diff(self, project: str, commit: Change) -> Change:
        whole = await self.http.parsed(f"{self._path(project)}/commits/{quote(commit.id)}", _GITHUB_COMMIT)
        return _with_files(commit, [(file.filename, file.patch) for file in whole.files])

    def _path(self, project: str) -> str:
        return f"repos/{quote(project, safe='/')}"


class _GitLabCommit(BaseModel):
    id: str
    message: str
    author_name: str = ""
    committed_date: AwareDatetime
    web_url: str = ""


class _GitLabDiff(BaseModel):
    new_path: str
    diff: str = ""


class _GitLabUser(BaseModel):
    name: str = ""


class _GitLabEnvironment(BaseModel):
    name: str = ""


class _GitLabDeployment(BaseModel):
    id: int
    sha: str
    ref: str = ""
    status: str = ""
    updated_at: AwareDatetime
    user: _GitLabUser | None = None
    environment: _GitLabEnvironment = _GitLabEnvironment()


_GITLAB_COMMITS = TypeAdapter(list[_GitLabCommit])
_GITLAB_DIFFS = TypeAdapter(list[_GitLabDiff])
_GITLAB_DEPLOYMENTS = TypeAdapter(list[_GitLabDeployment])


@dataclass(frozen=True, slots=True)
class GitLabRepositories:
    """RepositoryHost for projects by their path or number."""

    http: Http

    async def commits(self, project: str, window: TimeWindow) -> list[Change]:
        asked = {"since": window.start.isoformat(), "until": window.end.isoformat(), "per_page": str(MAX_COMMITS)}
        found = await self.http.parsed(f"{self._path(project)}/repository/commits", _GITLAB_COMMITS, asked)
        return [_commit(each.id, each.committed_date, each.author_name, each.message, each.web_url) for each in found]

    async def deployments(self, project: str, window: TimeWindow) -> list[Change]:
        asked = {
            "updated_after": window.start.isoformat(),
            "updated_before": window.end.isoformat(),
            "order_by": "updated_at",
            "sort": "desc",
            "status": "success",
            "per_page": str(MAX_DEPLOYMENTS),
        }
        found = await self.http.parsed(f"{self._path(project)}/deployments", _GITLAB_DEPLOYMENTS, asked)
        return [
            Change(
                id=f"deployment-{each.id}",
                at=each.updated_at,
                kind="deploy",
                service="",
                author=each.user.name if each.user else "",
                title=f"{each.ref} to {each.environment.name}"[:MAX_TITLE],
                revision=each.sha,
            )
            for each in found
        ]

    async def with_diff(self, project: str, commit: Change) -> Change:
        path = f"{self._path(project)}/repository/commits/{quote(commit.id)}/diff"
        found = await self.http.parsed(path, _GITLAB_DIFFS)
        return _with_files(commit, [(each.new_path, each.diff) for each in found])

    def _path(self, project: str) -> str:
        return f"api/v4/projects/{quote(project, safe='')}"


def _commit(sha: str, at: AwareDatetime, author: str, message: str, url: str) -> Change:
    title, _, body = message.partition("\n")
    return Change(
        id=sha[:12],
        at=at,
        kind="commit",
        service="",
        author=author[:MAX_TITLE],
        title=title[:MAX_TITLE],
        detail=body.strip()[:MAX_DETAIL],
        url=url,
        revision=sha,
    )


def _with_files(commit: Change, files: Sequence[tuple[str, str]]) -> Change:
    diff = "\n".join(f"--- a/{path}\n+++ b/{path}\n{patch.rstrip()}" for path, patch in files if patch)
    return replace(commit, files=tuple(path for path, _ in files)[:MAX_FILES], diff=diff[:MAX_DIFF])
