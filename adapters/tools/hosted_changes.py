"""Commits and deployments of repositories on a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from pydantic import AliasChoices, AliasPath, BaseModel, Field, TypeAdapter

from adapters.edge import Items, Moment, gaps_in, typed
from adapters.tools.ci import Builds, BuildServer
from adapters.tools.parts import Part, chosen, detailed, kept
from adapters.tools.section import Tools
from core.model.explanation import Gap, GapReason
from core.ports import Change, Partial, TimeWindow

MAX_COMMITS = 50  # latest commits of a repository within a window
MAX_DEPLOYMENTS = 50
MAX_DIFFS = 12  # latest commits of a repository whose diffs are read
MAX_DIFF = 20_000  # characters per commit
MAX_FILES = 200
MAX_TITLE = 500  # characters
MAX_DETAIL = 4_000


class RepositoryHost(Protocol):
    """A repository server. Its results name no service. Raises ToolUnavailable, and returns Partial like a reader."""

    async def commits(self, project: str, window: TimeWindow) -> list[Change]: ...

    async def deployments(self, project: str, window: TimeWindow) -> list[Change]: ...

    async def with_diff(self, project: str, commit: Change) -> Change:
        """Return the commit with its files and diff."""
        ...


class HostedChanges:
    """ChangeReader over the repositories of `services`: service → project.

    A commit in a repository that several services share has no service: its paths show which ones it affects.
    """

    def __init__(self, name: str, host: RepositoryHost, services: Mapping[str, str]) -> None:
        self.name = name
        self._host = host
        self._services: dict[str, list[str]] = {}
        for service, project in services.items():
            self._services.setdefault(project, []).append(service)

    async def changes(self, window: TimeWindow) -> list[Change]:
        read = await kept(self.name, [part for project in self._services for part in self._parts(project, window)])
        changes = [change for change in read if window.start <= change.at < window.end]
        return Partial(sorted(changes, key=lambda change: change.at), read.gaps)

    def _parts(self, project: str, window: TimeWindow) -> list[Part[Change]]:
        return [
            (f"commits of {project}", self._commits(project, window)),
            (f"deployments of {project}", self._deployments(project, window)),
        ]

    async def _commits(self, project: str, window: TimeWindow) -> list[Change]:
        commits = await self._host.commits(project, window)
        ordered = sorted(commits, key=lambda commit: commit.at, reverse=True)
        latest = chosen(ordered, MAX_DIFFS, f"{self.name}: diffs of {project}", lambda commit: commit.id)
        shown = await detailed(
            self.name, [(f"diff of {each.id}", each, self._host.with_diff(project, each)) for each in latest]
        )
        owners = self._services[project]
        owner = owners[0] if len(owners) == 1 else ""
        named = (replace(each, service=owner) for each in (*shown, *ordered[MAX_DIFFS:]))
        return Partial(named, (*gaps_in(commits), *shown.gaps, *latest.gaps, *not_listed(commits, MAX_COMMITS)))

    async def _deployments(self, project: str, window: TimeWindow) -> list[Change]:
        owners = self._services[project]
        deployments = await self._host.deployments(project, window)
        return typed(deployments, lambda change: replace(change, service=_deployed(change, owners)))


def not_listed(items: Sequence[object], most: int) -> list[Gap]:
    """Return a gap if a server may have more than the last `most` items that were asked for."""
    return [Gap("", GapReason.LEFT_OUT, f"all before the last {most}")] if len(items) >= most else []


def _deployed(deployment: Change, owners: Sequence[str]) -> str:
    """Return the service that a deployment names, or the only one of its repository."""
    named = [owner for owner in owners if owner in f"{deployment.title} {deployment.detail}"]
    return max(named or (owners if len(owners) == 1 else [""]), key=len)


class ChangedFile(BaseModel):
    path: str = Field(validation_alias=AliasChoices("filename", "new_path", AliasPath("item", "path")))
    patch: str = Field("", validation_alias=AliasChoices("patch", "diff"))
    is_folder: bool = Field(False, validation_alias=AliasPath("item", "isFolder"))


class Commit(BaseModel):
    """A commit. Each field is filled from the first name in a server's answer."""

    sha: str = Field(validation_alias=AliasChoices("sha", "id"))
    at: Moment = Field(
        validation_alias=AliasChoices(AliasPath("commit", "committer", "date"), "committed_date", "timestamp")
    )
    author: str = Field(
        "",
        validation_alias=AliasChoices(
            AliasPath("commit", "author", "name"), "author_name", AliasPath("author", "displayName")
        ),
    )
    message: str = Field(validation_alias=AliasChoices(AliasPath("commit", "message"), "message"))
    url: str = Field("", validation_alias=AliasChoices("html_url", "web_url", "displayUri"))

    @property
    def change(self) -> Change:
        title, _, body = self.message.partition("\n")
        return Change(
            id=self.sha[:12],
            at=self.at,
            kind="commit",
            service="",
            author=self.author[:MAX_TITLE],
            title=title[:MAX_TITLE],
            detail=body.strip()[:MAX_DETAIL],
            url=self.url,
            revision=self.sha,
        )


class Deployment(BaseModel):
    """A deployment. Each field is filled from the first name in a server's answer."""

    id: int
    sha: str
    ref: str = ""
    environment: str = Field("", validation_alias=AliasChoices(AliasPath("environment", "name"), "environment"))
    description: str | None = ""
    at: Moment = Field(validation_alias="created_at")
    author: str = Field("", validation_alias=AliasChoices(AliasPath("creator", "login"), AliasPath("user", "name")))

    @property
    def change(self) -> Change:
        return Change(
            id=f"deployment-{self.id}",
            at=self.at,
            kind="deploy",
            service="",
            author=self.author,
            title=f"{self.ref} to {self.environment}"[:MAX_TITLE],
            detail=(self.description or "")[:MAX_DETAIL],
            revision=self.sha,
        )


COMMITS = TypeAdapter(Items[Commit])
FILES = TypeAdapter(Items[ChangedFile])


def with_files(commit: Change, files: Sequence[ChangedFile]) -> Change:
    """Return a commit with its files and diff."""
    diff = "\n".join(f"--- a/{each.path}\n+++ b/{each.path}\n{each.patch.rstrip()}" for each in files if each.patch)
    paths = tuple(each.path.lstrip("/") for each in files if not each.is_folder)
    return replace(commit, files=paths[:MAX_FILES], diff=diff[:MAX_DIFF])


class HostedRepositories(RepositoryHost, BuildServer, Protocol):
    """A server with repositories and builds."""


def hosted_tools(name: str, server: HostedRepositories, services: Mapping[str, str]) -> Tools:
    """Return the tools that read the builds of a server, and its commits and deployments."""
    changes = HostedChanges(f"{name} changes", server, services)
    return Tools(toolboxes=(Builds(name, server, services),), changes=(changes,))
