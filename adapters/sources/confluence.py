"""Pages of Confluence (Cloud or Data Center) through the REST API, version 1, which both support.

https://developer.atlassian.com/cloud/confluence/rest/v1/api-group-content/ ·
https://developer.atlassian.com/server/confluence/confluence-rest-api-examples/

Each run lists every page of the spaces without its body: version, ancestors and restrictions. Only this shows deleted
pages and changed restrictions, which do not change the modification date. Then the bodies of new or changed pages are
read, and of pages whose readers changed.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AliasPath, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import to_json

from adapters.edge import Moment
from adapters.http import Http, Refused, Token, basic, followed, source_server
from adapters.section import EnvironmentName, Host
from adapters.sources.front_matter import NOBODY
from adapters.sources.parsing import confluence_text
from adapters.sources.section import Identities, Readers, SourceSection, mark, readers_of
from core.model.document import AnchorStyle, Document
from core.model.errors import ConfigurationError, MalformedInput, SourceUnavailable
from core.ports import LeftOut, SourceChanges

SEARCH = "rest/api/content/search"
RESTRICTIONS = "restrictions.read.restrictions.user,restrictions.read.restrictions.group"
LISTED = f"version,ancestors,{RESTRICTIONS}"
LIST_LIMIT = 100  # pages per list request; a server may return fewer
BODIES = 25  # pages with bodies per request; the limit of Cloud

_SPACE = re.compile(r"^~?[\w.-]+$")

T = TypeVar("T")


class _Links(BaseModel):
    next: str | None = None


class _Results(BaseModel):
    results: list[dict[str, Any]]
    links: _Links = Field(_Links(), alias="_links")


_RESULTS = TypeAdapter(_Results)


@dataclass(frozen=True, slots=True)
class _Position:
    """The position of reading: up to `since`. `marks` are digests of the readers of restricted pages."""

    setting: str
    since: str = ""
    marks: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def parsed(cls, cursor: str, setting: str) -> _Position:
        """Return the position in `cursor`; the start if there is none, or it was made with other settings."""
        try:
            position = TypeAdapter(cls).validate_json(cursor)
        except ValueError:
            return cls(setting)
        return position if position.setting == setting else cls(setting)

    def __str__(self) -> str:
        return to_json(self).decode()


class ConfluenceSource:
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

    async def check(self) -> None:
        async for _ in self._listed():
            return
        raise SourceUnavailable(
            f"{self.name}: Confluence shows no page of {', '.join(self._spaces)}. Check the spaces and the token's rights."
        )

    async def changes(self, cursor: str, known_ids: frozenset[str]) -> AsyncIterator[SourceChanges]:
        position = _Position.parsed(cursor, self._setting())
        listed = {page.id: page async for page in self._listed()}
        if known_ids and not listed:
            raise SourceUnavailable(
                f"{self.name}: Confluence no longer shows a page of {', '.join(self._spaces)}. Check the token's rights."
            )
        readers = await self._readers(listed)
        marks = {page_id: mark("", readers[page_id]) for page_id in listed if readers[page_id] != self._access.readers}
        people = tuple(sorted({names for page in listed.values() if (names := names_of(page.version.by))}))
        done = dict(position.marks)
        since = position.since
        for batch in _batched(self._due(listed.values(), position, marks, known_ids)):
            documents, left_out = await self._documents(batch, readers, people)
            done |= {page.id: marks.get(page.id, "") for page in batch}
            since = max(since, *(page.changed_at for page in batch))
            # A page that was left out may now be restricted, or say that it is.
            gone = known_ids & ({self._id(page.id) for page in batch} - {document.id for document in documents})
            yield SourceChanges(tuple(documents), gone, str(_Position(position.setting, since, _named(done))), left_out)
        gone = await self._gone(known_ids, listed)
        yield SourceChanges((), gone, str(_Position(position.setting, since, marks)))

    def _setting(self) -> str:
        spaces = (f"space {space}" for space in self._spaces)
        identities = (f"{key}={sorted(value)}" for key, value in self._access.identities.items())
        return mark("", (*spaces, *self._access.readers, *identities))

    def _due(
        self, pages: Iterable[ListedPage], position: _Position, marks: Mapping[str, str], known_ids: frozenset[str]
    ) -> list[ListedPage]:
        """Return the pages whose bodies must be read, oldest change first, so that a killed run can be continued."""
        due = [
            page
            for page in pages
            if self._id(page.id) not in known_ids
            or page.changed_at >= position.since
            or marks.get(page.id, "") != position.marks.get(page.id, "")
        ]
        return sorted(due, key=lambda page: page.changed_at)

    async def _listed(self) -> AsyncIterator[ListedPage]:
        spaces = ",".join(f'"{space}"' for space in self._spaces)
        async for result in self._search(f"type=page and space in ({spaces}) order by created", LISTED, LIST_LIMIT):
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

    async def _documents(
        self, batch: Sequence[ListedPage], readers: Mapping[str, frozenset[str]], people: tuple[tuple[str, ...], ...]
    ) -> tuple[tuple[Document, ...], tuple[LeftOut, ...]]:
        """Return the pages of a batch, and those that cannot be read. Pages deleted meanwhile are missing."""
        cql = f"type=page and id in ({','.join(page.id for page in batch)})"
        documents, left_out = list[Document](), list[LeftOut]()
        for item in [item async for item in self._search(cql, "body.storage,version,space", BODIES)]:
            try:
                allowed = readers.get(str(item.get("id")), frozenset({NOBODY}))
                documents.append(await self._document(item, allowed, people))
            except MalformedInput as error:
                left_out.append(LeftOut(f"page {item.get('id')}", str(error)))
        return tuple(documents), tuple(left_out)

    async def _document(
        self, item: dict[str, Any], readers: frozenset[str], people: tuple[tuple[str, ...], ...]
    ) -> Document:
        """Return a page. Raises MalformedInput."""
        try:
            page, space = ListedPage.model_validate(item), str(item["space"]["key"])
            storage, webui = str(item["body"]["storage"]["value"]), str(item["_links"]["webui"])
        except (ValidationError, KeyError, TypeError) as error:
            raise MalformedInput("Confluence returned the page without its version, space, text or link.") from error
        identities = {key: names[0] for names in people for key in names[1:]}
        return Document(
            id=self._id(page.id),
            source=self.name,
            family=space,
            title=page.title,
            text=await confluence_text(storage, self._url, space, identities),
            url=self._absolute(webui),
            updated_at=page.version.when,
            readers=readers,
            people=people,
            anchors=self._anchors,
        )

    async def _gone(self, known_ids: frozenset[str], listed: Mapping[str, ListedPage]) -> frozenset[str]:
        """Return the indexed pages that are neither listed nor found by id.

        A page deleted during a listing by offset shifts others across the edge of a result page, so a missing page is
        checked by id.
        """
        missing = {known_id.removeprefix(f"{self.name}/") for known_id in known_ids} - listed.keys()
        ours = {page_id for page_id in missing if page_id.isdigit()}
        spaces = ",".join(f'"{space}"' for space in self._spaces)
        there = set[str]()
        for batch in _batched(sorted(ours)):
            cql = f"type=page and space in ({spaces}) and id in ({','.join(batch)})"
            there |= {str(item.get("id")) async for item in self._search(cql, "version", BODIES)}
        return frozenset(self._id(page_id) for page_id in missing - there)

    def _id(self, page_id: str) -> str:
        return f"{self.name}/{page_id}"


def _named(marks: Mapping[str, str]) -> dict[str, str]:
    return {page_id: mark for page_id, mark in marks.items() if mark}


def _batched(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[start : start + BODIES] for start in range(0, len(items), BODIES))


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

    @property
    def changed_at(self) -> str:
        """Return the time of the change in UTC, so that times compare as text."""
        return self.version.when.astimezone(UTC).isoformat(timespec="microseconds")


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
