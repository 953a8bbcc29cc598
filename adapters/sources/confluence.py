"""Pages of Confluence (Cloud or Data Center) through the REST API, version 1, which both support.

https://developer.atlassian.com/cloud/confluence/rest/v1/api-group-content/ ·
https://developer.atlassian.com/server/confluence/confluence-rest-api-examples/

Each run lists every page of the spaces without its body: version, ancestors and restrictions. Only this shows deleted
pages and changed restrictions, which do not change the modification date. Then the bodies of new or changed pages are
read, and of pages whose readers changed.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AliasPath, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from adapters.http import Http, Moment, Refused, Token, basic, followed, source_server
from adapters.section import EnvironmentName, Host
from adapters.sources.document_properties import NOBODY
from adapters.sources.formats import STORAGE
from adapters.sources.parsing import FileOrigin, documents_of, placed
from adapters.sources.section import (
    Entry,
    Identities,
    Indexed,
    ListingPart,
    OnePlace,
    Position,
    Readers,
    SourceSection,
    readers_of,
)
from core.model.document import AnchorStyle, Document
from core.model.errors import ConfigurationError, MalformedInput, SourceUnavailable
from core.ports import LeftOut

SEARCH = "rest/api/content/search"
RESTRICTIONS = "restrictions.read.restrictions.user,restrictions.read.restrictions.group"
LISTED = f"version,ancestors,{RESTRICTIONS}"
LIST_LIMIT = 100  # pages per list request; a server may return fewer
BODIES = 25  # pages with bodies per request; the limit of Cloud

_SPACE = re.compile(r"^~?[\w.-]+$")


class _Links(BaseModel):
    next: str | None = None


class _Results(BaseModel):
    results: list[dict[str, Any]]
    links: _Links = Field(_Links(), alias="_links")


_RESULTS = TypeAdapter(_Results)


class ConfluenceSource(OnePlace):
    """The pages of some spaces. A page is readable by those who may read it and all its ancestors."""

    def __init__(self, name: str, server: Http, url: str, spaces: Sequence[str], access: Access) -> None:
        """Create the source. `url` is the site's address with its context path (`https://acme.atlassian.net/wiki`)."""
        if wrong := [space for space in spaces if not _SPACE.match(space)]:
            raise ConfigurationError(f"Source {name}: {wrong[0]!r} is not the key of a Confluence space.")
        self.name = name
        self._server = server
        self._url = url.rstrip("/")
        is_cloud = (urlsplit(url).hostname or "").endswith(".atlassian.net")
        self._anchors = AnchorStyle.HYPHENS if is_cloud else AnchorStyle.WITH_TITLE
        self._spaces = spaces
        self._access = access
        self._contents = dict[str, dict[str, Any]]()  # of the pages that are read next

    async def check(self) -> None:
        async for _ in self._listed():
            return
        raise SourceUnavailable(
            f"{self.name}: Confluence shows no page of {', '.join(self._spaces)}. Check the spaces and the token's rights."
        )

    async def listing(self, position: Position, indexed: Indexed) -> AsyncIterator[ListingPart]:
        listed = {page.id: page async for page in self._listed()}
        if indexed and not listed:
            raise SourceUnavailable(
                f"{self.name}: Confluence no longer shows a page of {', '.join(self._spaces)}. Check the token's rights."
            )
        # A page deleted during a listing by offset shifts others across the edge of a result page.
        missing = sorted(filter(str.isdigit, indexed.keys() - listed.keys()))
        for start in range(0, len(missing), BODIES):
            listed |= {page.id: page async for page in self._listed(missing[start : start + BODIES])}
        readers = await self._readers(listed)
        people = tuple(sorted({names for page in listed.values() if (names := names_of(page.version.by))}))
        entries = list[Entry]()
        for page in listed.values():
            read = partial(self._document, page.id, readers[page.id], people)
            version = page.version.when.isoformat()
            entries.append(Entry(page.id, readers[page.id], version, read, f"page {page.id}"))
        yield ListingPart(entries, is_whole=True)

    async def prepare(self, batch: Sequence[Entry]) -> None:
        self._contents.clear()
        for start in range(0, len(batch), BODIES):
            cql = f"type=page and id in ({','.join(entry.id for entry in batch[start : start + BODIES])})"
            async for item in self._search(cql, "body.storage,version,space", BODIES):
                self._contents[str(item.get("id"))] = item

    async def _listed(self, ids: Sequence[str] = ()) -> AsyncIterator[ListedPage]:
        """Yield the pages of the spaces: all, or those of them with these ids."""
        spaces = ",".join(f'"{space}"' for space in self._spaces)
        which = f" and id in ({','.join(ids)})" if ids else ""
        cql = f"type=page and space in ({spaces}){which} order by created"
        async for result in self._search(cql, LISTED, LIST_LIMIT):
            try:
                yield ListedPage.model_validate(result)
            except ValidationError as error:
                yield self._understood_in_part(result, error)

    def _understood_in_part(self, result: dict[str, Any], error: ValidationError) -> ListedPage:
        """Return a page with invalid restrictions as one with unknown restrictions."""
        try:
            return ListedPage.model_validate(result | {"restrictions": None, "ancestors": None})
        except ValidationError:
            detail = error.errors()[0]
            raise SourceUnavailable(
                f"{self.name}: Confluence lists a page without {'.'.join(map(str, detail['loc']))}."
            ) from error

    async def _search(self, cql: str, expand: str, limit: int) -> AsyncIterator[dict[str, Any]]:
        """Yield the results of all pages. The link to the next page has an offset (Data Center) or a cursor (Cloud)."""
        query = {"cql": cql, "expand": expand, "limit": str(limit)}
        answer = await self._server.parsed(SEARCH, _RESULTS, query)
        before = set[str]()
        while True:
            for result in answer.results:
                yield result
            if not (following := answer.links.next):
                return
            answer = await self._server.parsed(self._absolute(followed(following, before, self.name)), _RESULTS)

    def _absolute(self, link: str) -> str:
        """Return an absolute address. Links may lack the context path and the host."""
        context = urlsplit(self._url).path
        return f"{self._url}{link}" if link.startswith("/") and context and not link.startswith(f"{context}/") else link

    async def _readers(self, listed: Mapping[str, ListedPage]) -> dict[str, frozenset[str]]:
        own = {page.id: self._access.of(page.restrictions) for page in listed.values()}
        outside = {above.id for page in listed.values() for above in page.ancestors or ()} - own.keys()
        for page_id in sorted(outside):
            own[page_id] = await self._restrictions_of(page_id)
        return {page.id: self._effective(page, own) for page in listed.values()}

    def _effective(self, page: ListedPage, own: Mapping[str, frozenset[str] | None]) -> frozenset[str]:
        """Return the readers of a page, who may also read every page above it, because restrictions are inherited."""
        if page.ancestors is None:
            return frozenset({NOBODY})
        chain = [own[page_id] for page_id in (page.id, *(above.id for above in page.ancestors))]
        restricted = [readers for readers in chain if readers is not None]
        return (frozenset.intersection(*restricted) or frozenset({NOBODY})) if restricted else self._access.readers

    async def _restrictions_of(self, page_id: str) -> frozenset[str] | None:
        """Return the readers of an ancestor that is not listed; nobody if it is hidden from us."""
        try:
            answer = await self._server.get(f"rest/api/content/{page_id}", {"expand": RESTRICTIONS})
            return self._access.of(Restrictions.model_validate(answer.get("restrictions")))
        except (Refused, ValidationError):
            return frozenset({NOBODY})

    async def _document(
        self, page_id: str, readers: frozenset[str], people: tuple[tuple[str, ...], ...]
    ) -> list[Document | LeftOut]:
        """Return a page. Raises MalformedInput, also for one that is gone, or restricted, since it was listed."""
        item = self._contents.get(page_id, {})
        try:
            page, space = ListedPage.model_validate(item), str(item["space"]["key"])
            storage, webui = str(item["body"]["storage"]["value"]), str(item["_links"]["webui"])
        except (ValidationError, KeyError, TypeError) as error:
            raise MalformedInput("Confluence returned the page without its version, space, text or link.") from error
        identities = {key: names[0] for names in people for key in names[1:]}
        origin = FileOrigin(self.name, PurePosixPath(f"page{STORAGE}"), self._absolute(webui), readers)
        given = {"site": self._url, "space": space, "names": identities}
        parts = await documents_of(origin, storage.encode("utf-8", "replace"), given)
        return placed(
            parts,
            f"page {page.id}",
            id=f"{self.name}/{page.id}",
            family=space,
            title=page.title,
            updated_at=page.version.when,
            people=people,
            anchors=self._anchors,
        )


class ConfluenceSection(SourceSection):
    """A Confluence site. `url` includes its context path (`https://acme.atlassian.net/wiki`).

    `token_env` names the variable with the API token of the account `email` (Cloud), or with a personal access token if
    there is no `email` (Data Center). `readers` are the readers of unrestricted pages: everybody with access to the
    spaces. `identities` maps `group:NAME` and `user:ID` of Confluence to reader names.
    """

    kind: Literal["confluence"]
    url: str
    spaces: Annotated[tuple[str, ...], Field(min_length=1)]
    token_env: EnvironmentName
    email: str = ""
    readers: Readers
    identities: Identities

    @property
    def place(self) -> str:
        return f"{self.url} {', '.join(self.spaces)}"

    def open(self, host: Host) -> ConfluenceSource:
        secret = host.settings.secret(self.token_env, self.name)
        token = basic(self.email, secret) if self.email else Token(f"Bearer {secret}")
        server = source_server(f"Confluence at {self.url}", self.url, host.session, token)
        access = Access(frozenset(self.readers), readers_of(self.identities))
        return ConfluenceSource(self.name, server, self.url, self.spaces, access)


_READ = ("read", "restrictions")


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class Author(_Model):
    displayName: str = ""
    accountId: str = ""
    username: str = ""
    userKey: str = ""
    email: str = ""


class _Version(_Model):
    when: Moment
    by: Author = Author()


class _Ancestor(_Model):
    id: str


class _Group(_Model):
    name: str


class Restrictions(_Model):
    """The people and groups that may read a page. The counts include those that are hidden from us."""

    users: list[Author] = Field(validation_alias=AliasPath(*_READ, "user", "results"))
    user_count: int = Field(0, validation_alias=AliasPath(*_READ, "user", "size"))
    groups: list[_Group] = Field(validation_alias=AliasPath(*_READ, "group", "results"))
    group_count: int = Field(0, validation_alias=AliasPath(*_READ, "group", "size"))


class ListedPage(_Model):
    """A listed page. None means unknown."""

    id: str
    title: str
    version: _Version
    ancestors: list[_Ancestor] | None = None
    restrictions: Restrictions | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """Reading rights. `readers` may read unrestricted pages.

    `identities` maps a Confluence group or user, as `group:NAME` or `user:ID` (account id, user name or user key), to
    reader names. Unmapped ones map to no reader.
    """

    readers: frozenset[str]
    identities: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])

    def of(self, restrictions: Restrictions | None) -> frozenset[str] | None:
        """Return the readers that restrictions allow; None if there are no restrictions.

        Unknown restrictions allow nobody.
        """
        if restrictions is None:
            return frozenset({NOBODY})
        groups = [f"group:{group.name}" for group in restrictions.groups]
        users = [
            [f"user:{key}" for key in (user.accountId, user.username, user.userKey) if key]
            for user in restrictions.users
        ]
        # A page may be restricted to people who are hidden from us.
        if not (groups or users or restrictions.user_count or restrictions.group_count):
            return None
        named = [self.identities.get(group, frozenset()) for group in groups]
        named += [self.identities.get(key, frozenset()) for keys in users for key in keys]
        return frozenset[str]().union(*named) or frozenset({NOBODY})


def names_of(author: Author) -> tuple[str, ...]:
    """Return the displayed name and other identifiers of an author; empty for somebody without a name."""
    if not author.displayName:
        return ()
    return (author.displayName, *filter(None, (author.accountId, author.username, author.userKey, author.email)))
