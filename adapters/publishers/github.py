"""GitHub: issues, and Markdown files that are proposed as pull requests.

https://docs.github.com/en/rest/issues/issues · https://docs.github.com/en/rest/pulls/pulls ·
https://docs.github.com/en/rest/repos/contents · https://docs.github.com/en/rest/git/refs
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Literal
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter

from adapters.edge import Moment
from adapters.http import Http, parsed_or_none
from adapters.publishers.section import PublisherSection, Repository
from adapters.section import Host, Url
from core.incidents.postmortem import markdown_file
from core.model.errors import SourceUnavailable
from core.model.incident import Filed, FilingKind, Report

PAGE = 100
MAX_PAGES = 10  # of issues created since the first attempt
HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
CLOCKS_DIFFER = timedelta(hours=1)  # at most, between this machine and GitHub


class _Item(BaseModel):
    number: int
    html_url: str
    body: str | None = ""
    created_at: Moment | None = None


class _Permissions(BaseModel):
    push: bool = False


class _Repository(BaseModel):
    default_branch: str
    has_issues: bool = True
    permissions: _Permissions = _Permissions()


class _Object(BaseModel):
    sha: str


class _Reference(BaseModel):
    object: _Object


_ITEM, _ITEMS = TypeAdapter(_Item), TypeAdapter(list[_Item])
_REPOSITORY, _REFERENCE, _OBJECT = TypeAdapter(_Repository), TypeAdapter(_Reference), TypeAdapter(_Object)
_ANYTHING = TypeAdapter(dict[str, object])


@dataclass(frozen=True, slots=True)
class GitHubIssues:
    """Issues of the repository `owner/name`."""

    http: Http
    repository: str
    settles_after: float = 0.0

    async def find(self, report: Report) -> Filed | None:
        query = {"state": "all", "sort": "created", "direction": "desc", "per_page": str(PAGE)}
        since = report.since - CLOCKS_DIFFER
        for page in range(1, MAX_PAGES + 1):
            query |= {"since": since.isoformat(), "page": str(page)}
            items = await self.http.parsed(f"repos/{self.repository}/issues", _ITEMS, query)
            if issue := next((item for item in items if report.marker in (item.body or "")), None):
                return _filed(issue, self.repository)
            if len(items) < PAGE or (items[-1].created_at or since) < since:
                return None
        return None

    async def file(self, report: Report) -> Filed:
        value = {"title": report.title, "body": report.body}
        return _filed(await self.http.send("POST", f"repos/{self.repository}/issues", value, _ITEM), self.repository)

    async def check(self) -> None:
        if not (await self.http.parsed(f"repos/{self.repository}", _REPOSITORY)).has_issues:
            raise SourceUnavailable(f"Issues are disabled in the repository {self.repository}.")


@dataclass(frozen=True, slots=True)
class GitHubFiles:
    """Markdown files in a folder of the repository `owner/name`, each proposed as a pull request against its default branch.

    The name of the proposing branch follows from the report, so that every step may be repeated.
    """

    http: Http
    repository: str
    folder: str
    settles_after: float = 0.0

    async def find(self, report: Report) -> Filed | None:
        query = {"head": f"{self.repository.partition('/')[0]}:{_branch(report)}", "state": "all"}
        requests = await self.http.parsed(f"repos/{self.repository}/pulls", _ITEMS, query)
        return _filed(requests[0], self.repository) if requests else None

    async def file(self, report: Report) -> Filed:
        base = (await self._repository()).default_branch
        await self._create_branch(_branch(report), base)
        await self._write(report)
        value = {"title": report.title, "head": _branch(report), "base": base, "body": report.footer}
        return _filed(await self.http.send("POST", f"repos/{self.repository}/pulls", value, _ITEM), self.repository)

    async def check(self) -> None:
        if not (await self._repository()).permissions.push:
            raise SourceUnavailable(f"The token may not write to the repository {self.repository}.")

    async def _repository(self) -> _Repository:
        return await self.http.parsed(f"repos/{self.repository}", _REPOSITORY)

    async def _create_branch(self, branch: str, base: str) -> None:
        path = f"repos/{self.repository}/git"
        if await parsed_or_none(self.http, f"{path}/ref/heads/{quote(branch)}", _REFERENCE) is None:
            head = await self.http.parsed(f"{path}/ref/heads/{quote(base)}", _REFERENCE)
            value = {"ref": f"refs/heads/{branch}", "sha": head.object.sha}
            await self.http.send("POST", f"{path}/refs", value, _REFERENCE)

    async def _write(self, report: Report) -> None:
        branch, path = _branch(report), f"repos/{self.repository}/contents/{quote(report.path(self.folder))}"
        written = await parsed_or_none(self.http, f"{path}?ref={quote(branch, safe='')}", _OBJECT)
        content = b64encode(markdown_file(report).encode()).decode()
        value = {"message": report.title, "content": content, "branch": branch}
        await self.http.send("PUT", path, value | ({"sha": written.sha} if written else {}), _ANYTHING)


def _filed(item: _Item, repository: str) -> Filed:
    return Filed(f"{repository}#{item.number}", item.html_url)


def _branch(report: Report) -> str:
    return f"plumbline/{report.marker}"


class GitHubIssueSection(PublisherSection):
    """Issues of a GitHub repository, `owner/name`. The token needs to write issues."""

    says_who_may_write: ClassVar[bool] = False  # in public repositories

    kind: Literal["github_issue"]
    url: Url = "https://api.github.com"
    repository: Repository

    def open(self, host: Host) -> GitHubIssues:
        return GitHubIssues(self.http(host, HEADERS), self.repository)


class GitHubFileSection(PublisherSection):
    """Markdown files in a GitHub repository, each proposed as a pull request against the default branch."""

    filed: ClassVar[FilingKind] = FilingKind.POSTMORTEM

    kind: Literal["github_file"]
    url: Url = "https://api.github.com"
    repository: Repository
    folder: str = "postmortems"

    def open(self, host: Host) -> GitHubFiles:
        return GitHubFiles(self.http(host, HEADERS), self.repository, self.folder)
