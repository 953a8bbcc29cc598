"""Jira issues and Confluence pages, on Atlassian's cloud or in a data centre.

https://developer.atlassian.com/cloud/jira/platform/rest/v2/api-group-issues/ ·
https://developer.atlassian.com/cloud/confluence/rest/v2/api-group-page/ ·
https://developer.atlassian.com/server/confluence/confluence-rest-api-examples/

Jira's version 2 takes texts in wiki markup on both. Confluence's pages are written by version 2 of its API in the cloud,
where version 1 is deprecated, and by version 1 in a data centre, which has no other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import quote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pydantic import AliasChoices, BaseModel, Field, TypeAdapter

from adapters.http import Http
from adapters.publishers.section import PublisherSection
from adapters.section import Host
from core.model.errors import SourceUnavailable
from core.model.incident import Filed, FilingKind, Report

CLOUD = ".atlassian.net"  # end of the host names of Atlassian's cloud
INDEXED_AFTER = 60.0  # seconds until Jira's search shows a new issue; usually much less

_ADDRESS = re.compile(r"https?://|mailto:")  # a link to anything else could name a person, a file or a macro
# Jira links a bare address, and reads an escape in it as a part of it. Inside a word, “-” and “_” are not markup.
_WIKI_SPECIAL = re.compile(r"https?://[^\s\\{}\[\]|!]+|[\\{}\[\]*+^~|!#@?]|(?<![^\W_])[_-]|[_-](?![^\W_])")
_markdown = MarkdownIt("commonmark", {"html": False, "xhtmlOut": True})


class _Fields(BaseModel):
    description: str | None = ""


class _Issue(BaseModel):
    key: str
    fields: _Fields = _Fields()


class _Issues(BaseModel):
    issues: list[_Issue] = []


class _Permission(BaseModel):
    havePermission: bool = False


class _Permissions(BaseModel):
    permissions: dict[str, _Permission] = {}


_ISSUE, _ISSUES, _PERMISSIONS = TypeAdapter(_Issue), TypeAdapter(_Issues), TypeAdapter(_Permissions)


@dataclass(frozen=True, slots=True)
class JiraIssues:
    """Issues of one type in the project with this key."""

    http: Http
    project: str
    issue_type: str
    cloud: bool
    settles_after: float = INDEXED_AFTER

    async def find(self, report: Report) -> Filed | None:
        query = {"jql": f'project = "{self.project}" AND description ~ "{report.marker}"', "fields": "description"}
        search = "rest/api/2/search/jql" if self.cloud else "rest/api/2/search"
        issues = (await self.http.parsed(search, _ISSUES, query)).issues
        return next((self._filed(each) for each in issues if report.marker in (each.fields.description or "")), None)

    async def file(self, report: Report) -> Filed:
        fields = {
            "project": {"key": self.project},
            "issuetype": {"name": self.issue_type},
            "summary": report.title,
            "description": wiki_markup(report.body),
        }
        return self._filed(await self.http.send("POST", "rest/api/2/issue", {"fields": fields}, _ISSUE))

    async def check(self) -> None:
        query = {"projectKey": self.project, "permissions": "CREATE_ISSUES"}
        granted = await self.http.parsed("rest/api/2/mypermissions", _PERMISSIONS, query)
        if not granted.permissions.get("CREATE_ISSUES", _Permission()).havePermission:
            raise SourceUnavailable(f"The token may not create issues in the project {self.project}.")

    def _filed(self, issue: _Issue) -> Filed:
        return Filed(issue.key, f"{self.http.url.rstrip('/')}/browse/{issue.key}")


class _Storage(BaseModel):
    value: str = ""


class _Body(BaseModel):
    storage: _Storage = _Storage()


class _Links(BaseModel):
    webui: str


class _Page(BaseModel):
    body: _Body = _Body()
    links: _Links = Field(alias="_links")


class _Pages(BaseModel):
    results: list[_Page] = []


class _Operation(BaseModel):
    operation: str = ""
    target: str = Field("", validation_alias=AliasChoices("targetType", "target"))


class _Space(BaseModel):
    id: str | int
    operations: Any = None

    @property
    def may_create(self) -> bool:
        """Return whether a page may be created. Version 2 lists the operations below `results`."""
        listed = self.operations.get("results", []) if isinstance(self.operations, dict) else self.operations or []
        return any(
            (each.operation, each.target) == ("create", "page")
            for each in TypeAdapter(list[_Operation]).validate_python(listed)
        )


class _Spaces(BaseModel):
    results: list[_Space] = []


_PAGE, _PAGES, _SPACE, _SPACES = TypeAdapter(_Page), TypeAdapter(_Pages), TypeAdapter(_Space), TypeAdapter(_Spaces)


@dataclass(frozen=True, slots=True)
class ConfluencePages:
    """Pages of the space with this key, below the page with the id `parent` if that is not empty.

    A title occurs once in a space, so that Confluence itself refuses a second page.
    """

    http: Http
    space: str
    parent: str
    cloud: bool
    settles_after: float = 0.0

    async def find(self, report: Report) -> Filed | None:
        if self.cloud:
            query = {"space-id": str((await self._space()).id), "title": report.title, "body-format": "storage"}
            pages = await self.http.parsed("api/v2/pages", _PAGES, query)
        else:
            query = {"spaceKey": self.space, "title": report.title, "expand": "body.storage"}
            pages = await self.http.parsed("rest/api/content", _PAGES, query)
        return next(
            (self._filed(page, report) for page in pages.results if report.marker in page.body.storage.value), None
        )

    async def file(self, report: Report) -> Filed:
        storage = {"representation": "storage", "value": _markdown.render(report.body)}
        if self.cloud:
            value = {
                "spaceId": str((await self._space()).id),
                "status": "current",
                "title": report.title,
                "body": storage,
            }
            value |= {"parentId": self.parent} if self.parent else {}
            page = await self.http.send("POST", "api/v2/pages", value, _PAGE)
        else:
            value = {"type": "page", "title": report.title, "space": {"key": self.space}, "body": {"storage": storage}}
            value |= {"ancestors": [{"id": self.parent}]} if self.parent else {}
            page = await self.http.send("POST", "rest/api/content", value, _PAGE)
        return self._filed(page, report)

    async def check(self) -> None:
        if not (await self._space()).may_create:
            raise SourceUnavailable(f"The token may not create pages in the space {self.space}.")

    async def _space(self) -> _Space:
        if not self.cloud:
            return await self.http.parsed(
                f"rest/api/space/{quote(self.space, safe='~')}", _SPACE, {"expand": "operations"}
            )
        query = {"keys": self.space, "include-operations": "true"}
        spaces = (await self.http.parsed("api/v2/spaces", _SPACES, query)).results
        if not spaces:
            raise SourceUnavailable(f"Confluence shows no space {self.space}: check its key and the token's rights.")
        return spaces[0]

    def _filed(self, page: _Page, report: Report) -> Filed:
        return Filed(report.title, f"{self.http.url.rstrip('/')}{page.links.webui}")


def wiki_markup(text: str) -> str:
    """Return Markdown as Jira's wiki markup. Tables and images become text."""
    lines: list[str] = []
    prefixes: list[str] = []  # of the lists around a line, and of a quotation
    for token in _markdown.parse(text):
        match token.type:
            case "heading_open":
                prefixes.append(f"h{token.tag[1:]}. ")
            case "bullet_list_open" | "ordered_list_open":
                prefixes.append("*" if token.type.startswith("bullet") else "#")
            case "blockquote_open":
                prefixes.append("bq. ")
            case "heading_close" | "bullet_list_close" | "ordered_list_close" | "blockquote_close":
                prefixes.pop()
                lines.append("")
            case "inline":
                lists = "".join(each for each in prefixes if each in "*#")
                other = "".join(each for each in prefixes if each not in "*#")
                lines.append(" ".join(filter(None, (lists, f"{other}{_wiki_inline(token)}"))))
            case "paragraph_close" if not prefixes:
                lines.append("")
            case "fence" | "code_block":
                shown = token.content.rstrip().replace("{noformat", "{\u2060noformat")  # it would end here
                lines += [f"{{noformat}}\n{shown}\n{{noformat}}", ""]
    return "\n".join(lines).strip() + "\n"


def _wiki_inline(inline: Token) -> str:
    parts: list[str] = []
    addresses: list[str] = []
    for token in inline.children or ():
        match token.type:
            case "code_inline":
                parts.append(f"{{{{{_plain(token.content)}}}}}")
            case "strong_open" | "strong_close":
                parts.append("*")
            case "em_open" | "em_close":
                parts.append("_")
            case "link_open":
                href = str(token.attrGet("href"))
                addresses.append(href.replace("|", "%7C").replace("]", "%5D") if _ADDRESS.match(href) else "")
                parts.append("[" if addresses[-1] else "")
            case "link_close":
                parts.append(f"|{address}]" if (address := addresses.pop()) else "")
            case "softbreak" | "hardbreak":
                parts.append(" ")
            case _:
                parts.append(_plain(token.content))
    return "".join(parts)


def _plain(text: str) -> str:
    return _WIKI_SPECIAL.sub(lambda match: match[0] if match[0][0] == "h" else f"\\{match[0]}", text)


Key = Annotated[str, Field(pattern=r"^~?[\w.-]+$")]


class _AtlassianSection(PublisherSection):
    """A site. The token is that of the account `email` (Cloud), or needs no `email` (Data Center)."""

    email: str = ""

    @property
    def is_in_cloud(self) -> bool:
        return (urlsplit(self.url).hostname or "").endswith(CLOUD)


class JiraIssueSection(_AtlassianSection):
    """Issues of a Jira project. The token is that of the account `email` (Cloud), or needs no `email` (Data Center)."""

    kind: Literal["jira_issue"]
    project: Key
    issue_type: Annotated[str, Field(min_length=1)] = "Task"

    def open(self, host: Host) -> JiraIssues:
        return JiraIssues(self.http(host, email=self.email), self.project, self.issue_type, self.is_in_cloud)


class ConfluencePageSection(_AtlassianSection):
    """Pages of a Confluence space, below the page with the id `parent`. For `url` and `email`, see the source."""

    filed: ClassVar[FilingKind] = FilingKind.POSTMORTEM

    kind: Literal["confluence_page"]
    space: Key
    parent: Annotated[str, Field(pattern=r"^\d*$")] = ""

    def open(self, host: Host) -> ConfluencePages:
        return ConfluencePages(self.http(host, email=self.email), self.space, self.parent, self.is_in_cloud)
