"""Files and pages of SharePoint sites through Microsoft Graph.

https://learn.microsoft.com/graph/api/driveitem-delta · https://learn.microsoft.com/graph/api/driveitem-get-content
https://learn.microsoft.com/graph/api/sitepage-list · https://learn.microsoft.com/graph/api/sitepage-get

A library is first read completely; then the delta link returned by Graph leads to the changes, until Graph refuses it or
a month has passed. A delta does not reliably name files whose permissions changed, so each run asks who may read each
document, and reads again those whose readers changed. Pages are listed completely by each run; new and changed ones are
read. Required application permissions: Sites.Read.All (or Sites.Selected, with the role `read` for each site),
GroupMember.Read.All and Channel.ReadBasic.All.

https://learn.microsoft.com/graph/api/resources/site · https://learn.microsoft.com/graph/api/resources/driveitem
https://learn.microsoft.com/graph/api/resources/sitepage · https://learn.microsoft.com/graph/api/resources/canvaslayout
https://learn.microsoft.com/graph/api/resources/standardwebpart

https://learn.microsoft.com/graph/api/driveitem-list-permissions · https://learn.microsoft.com/graph/api/resources/permission
https://learn.microsoft.com/graph/api/group-list-transitivemembers · https://learn.microsoft.com/graph/api/channel-list
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal
from urllib.parse import quote, unquote, urlsplit

import structlog
from pydantic import AliasPath, Field, TypeAdapter

from adapters.http import Gone, Http, Moment, Refused
from adapters.microsoft import (
    FULL_READ_EVERY,
    LINK_REFUSED,
    GraphIdentities,
    GraphIdentity,
    GraphModel,
    GraphSection,
    graph_pages,
    graph_values,
)
from adapters.section import Host
from adapters.sources.chat_threads import MAX_MEMBERS
from adapters.sources.document_properties import NOBODY, narrowed
from adapters.sources.formats import has_format, max_bytes, storable, web_address
from adapters.sources.parsing import FileOrigin, documents_of, of_other_formats
from adapters.sources.section import (
    Entry,
    Identities,
    Indexed,
    ListingPart,
    Position,
    SourcePlace,
    SourcePlaces,
    TrackedSource,
    readers_of,
)
from core.model.document import Document
from core.model.errors import SourceUnavailable
from core.model.text import missing_part
from core.ports import Clock, LeftOut

Id = Annotated[str, Field(pattern=r"^[\w!-]+$")]
SILENT = frozenset(
    {
        "2161a1c6-db61-4731-b97c-3cdb303f7cbb",  # divider
        "8654b779-4886-46d4-8ffb-b5ed960ee986",  # spacer
        "d1d91016-032f-456d-98a4-721247c305e8",  # image
        "6410b3b6-d440-4663-8744-378976dc041e",  # link preview
    }
)
"""Types of web parts that hold no text: https://learn.microsoft.com/graph/api/resources/standardwebpart"""
CODE = "code"  # the key of the text of a code snippet and of Markdown


class Site(GraphModel):
    id: str = Field(pattern=r"^[\w!-][\w.,!-]*$")
    name: str = ""
    displayName: str = ""


class Library(GraphModel):
    id: Id
    name: str = ""


class Item(GraphModel):
    """The properties that files and pages share."""

    id: Id
    name: str = ""
    eTag: str | None = None
    webUrl: str = ""
    lastModifiedDateTime: Moment | None = None
    author: GraphIdentity | None = Field(None, validation_alias=AliasPath("createdBy", "user"))
    editor: GraphIdentity | None = Field(None, validation_alias=AliasPath("lastModifiedBy", "user"))

    @property
    def version(self) -> str:
        """Return a text that changes with the item; empty if there is none."""
        return self.eTag or (self.lastModifiedDateTime.isoformat() if self.lastModifiedDateTime else "")

    @property
    def url(self) -> str:
        return web_address(self.webUrl)

    @property
    def people(self) -> Iterator[tuple[str, ...]]:
        return (each.names for each in (self.author, self.editor) if each and each.names)


class File(Item):
    """An item of a library: a file, a folder, or what was deleted."""

    size: int = 0
    file: dict[str, Any] | None = None
    deleted: dict[str, Any] | None = None

    @property
    def is_there(self) -> bool:
        return self.file is not None and self.deleted is None

    @property
    def path(self) -> PurePosixPath:
        return PurePosixPath(PurePosixPath(self.name).name)

    @property
    def is_document(self) -> bool:
        return self.is_there and has_format(self.path)


class _Pair(GraphModel):
    key: str = ""
    value: str = ""


class _WebPart(GraphModel):
    """A text with HTML, or another part with what SharePoint's own search indexes of it."""

    innerHtml: str | None = None
    webPartType: str | None = None
    title: str | None = Field(None, validation_alias=AliasPath("data", "title"))
    html: list[_Pair] = Field([], validation_alias=AliasPath("data", "serverProcessedContent", "htmlStrings"))
    texts: list[_Pair] = Field([], validation_alias=AliasPath("data", "serverProcessedContent", "searchablePlainTexts"))

    @property
    def content(self) -> str:
        if self.innerHtml:
            return self.innerHtml
        parts = [pair.value for pair in self.html]
        if not any(parts):
            parts = [_text(pair) for pair in self.texts if pair.value]
        if not any(parts) and self.webPartType and self.webPartType.lower() not in SILENT:
            parts = [f"<p>{escape(missing_part(self.title or 'a web part'))}</p>"]
        return "".join(parts)


class _Column(GraphModel):
    webparts: tuple[_WebPart, ...] = ()


class _Section(GraphModel):
    columns: tuple[_Column, ...] = ()


class _Canvas(GraphModel):
    horizontalSections: tuple[_Section, ...] = ()
    verticalSection: _Column | None = None


class SitePage(Item):
    title: str = ""
    level: str = Field("", validation_alias=AliasPath("publishingState", "level"))
    canvasLayout: _Canvas | None = None

    @property
    def is_published(self) -> bool:
        """Return whether the newest version is published; Graph returns drafts, which only editors see."""
        return self.level == "published"

    @property
    def html(self) -> str:
        """Return the content from left to right and from top to bottom."""
        canvas = self.canvasLayout or _Canvas()
        columns = [column for section in canvas.horizontalSections for column in section.columns]
        if canvas.verticalSection:
            columns.append(canvas.verticalSection)
        return "".join(f"<div>{part.content}</div>" for column in columns for part in column.webparts)


def _text(pair: _Pair) -> str:
    return f"<pre>{escape(pair.value)}</pre>" if pair.key == CODE else f"<p>{escape(pair.value)}</p>"


RAISED = frozenset({401, 404, 410})  # HTTP status codes: the token is refused, or the file is gone
MEMBERS = {"$select": "id,displayName,mail,userPrincipalName", "$top": "999"}

UNRESOLVED = "Its members are unknown ({}), so it reads nothing: give the app GroupMember.Read.All, or add `group:{}` to `identities`."
UNMAPPED = (
    "Graph does not give the members of a site's own group, so it reads nothing: add `site-group:{}` to `identities`."
)
UNTOLD = "Graph does not say who may read it ({}), so nobody does."


class _Permission(GraphModel):
    """A permission. Whoever has used or was sent a link is in `grantedToIdentitiesV2`; nobody else is a reader by it."""

    roles: list[str] = Field(min_length=1)
    grantedToV2: GraphIdentities | None = None
    grantedToIdentitiesV2: tuple[GraphIdentities, ...] = ()

    @property
    def granted(self) -> Iterator[GraphIdentities]:
        yield from (each for each in (self.grantedToV2, *self.grantedToIdentitiesV2) if each)


class _Member(GraphModel):
    kind: str = Field("", alias="@odata.type")
    id: str
    displayName: str | None = None
    mail: str | None = None
    userPrincipalName: str | None = None


_PERMISSIONS, _MEMBERS = TypeAdapter(list[_Permission]), TypeAdapter(list[_Member])


class SharePointAccess:
    """The readers of files, as Graph gives them during one run.

    `identities` maps a group of a site, a group or a person, as `site-group:NAME`, `group:ID` or `user:ID`, to reader
    names. People and groups of the tenant are resolved without it; groups of a site, whose members Graph does not give,
    are not. `people` are the names of all who may read something, and `notes` says who could not be resolved.
    """

    def __init__(self, server: Http, identities: Mapping[str, frozenset[str]]) -> None:
        self._server = server
        self._identities = identities
        self._groups: dict[str, frozenset[str]] = {}
        self.people: set[tuple[str, ...]] = set()
        self.notes: list[LeftOut] = []

    async def readers_of(self, drive_id: str, item_id: str, name: str) -> frozenset[str]:
        """Return the readers of a file; nobody if Graph does not give them. Raises Refused if it is gone."""
        address = f"drives/{quote(drive_id)}/items/{quote(item_id)}/permissions"
        try:
            permissions: list[_Permission] = await graph_values(self._server, address, kind=_PERMISSIONS)
        except Refused as error:
            if error.status in RAISED:
                raise
            self._note(name, UNTOLD.format(_reason(error)))
            return frozenset({NOBODY})
        granted = [each for permission in permissions for each in permission.granted]
        readers = [reader for identities in granted for reader in await self._readers(identities)]
        return frozenset(readers) or frozenset({NOBODY})

    async def _readers(self, granted: GraphIdentities) -> frozenset[str]:
        readers = frozenset[str]()
        if granted.user and granted.user.id:
            self.people |= {names for names in (granted.user.names,) if names}
            readers |= {_person(granted.user.id), *self._mapped(f"user:{granted.user.id}")}
        if granted.group and granted.group.id:
            readers |= await self._group(granted.group.id, granted.group.displayName or granted.group.id)
        if granted.siteGroup and granted.siteGroup.displayName:
            readers |= self._site_group(granted.siteGroup.displayName)
        return readers

    def _site_group(self, name: str) -> frozenset[str]:
        key = f"site-group:{name}"
        if key not in self._identities and key not in self._groups:
            self._note(f"group {name}", UNMAPPED.format(name))
        self._groups[key] = self._mapped(key)
        return self._groups[key]

    async def _group(self, group_id: str, name: str) -> frozenset[str]:
        """Return the members of a group, the channels that all members of its team read, and what it is mapped to."""
        if group_id not in self._groups:
            key = f"group:{group_id}"
            try:
                address = f"groups/{quote(group_id, safe='')}/transitiveMembers"
                values: list[_Member] = await graph_values(self._server, address, MEMBERS, _MEMBERS)
                members = [each for each in values if each.kind.endswith(".user")]
            except Refused as error:
                if key not in self._identities:
                    self._note(f"group {name}", UNRESOLVED.format(_reason(error), group_id))
                members = []
            self.people |= {
                tuple(filter(None, (each.displayName, each.mail, each.userPrincipalName)))
                for each in members
                if each.displayName
            }
            persons = [_person(each.id) for each in members] if len(members) <= MAX_MEMBERS else []
            self._groups[group_id] = frozenset(
                {*self._mapped(key), *persons, *(await self._channels(group_id) if members else ())}
            )
        return self._groups[group_id]

    async def _channels(self, group_id: str) -> list[str]:
        """Return the standard channels of the team with the same members as a group; none for a group without a team."""
        try:
            values = await graph_values(self._server, f"teams/{quote(group_id, safe='')}/channels")
        except Refused:
            return []
        return [f"channel:teams:{value['id']}" for value in values if value.get("membershipType") == "standard"]

    def _mapped(self, identity: str) -> frozenset[str]:
        return self._identities.get(identity, frozenset())

    def noted(self) -> list[LeftOut]:
        """Return the notes, once."""
        noted, self.notes = self.notes, []
        return noted

    def _note(self, name: str, reason: str) -> None:
        self.notes.append(LeftOut(name, reason, is_indexed=True))


def _reason(error: Refused) -> str:
    return f"HTTP status {error.status}" if error.status else "its answer has an unexpected format"


def _person(user_id: str) -> str:
    return f"person:teams:{user_id}"


FIELDS = "id,name,eTag,webUrl,size,file,deleted,lastModifiedDateTime,createdBy,lastModifiedBy"
PAGE_FIELDS = "id,name,title,eTag,webUrl,publishingState,lastModifiedDateTime,createdBy,lastModifiedBy"
DRAFT = "It is not published, so only its editors see it."


log = structlog.get_logger()


_SITE, _LIBRARIES = TypeAdapter(Site), TypeAdapter(list[Library])
_FILE, _FILES = TypeAdapter(File), TypeAdapter(list[File])
_PAGE, _PAGES = TypeAdapter(SitePage), TypeAdapter(list[SitePage])


class SharePointSource(TrackedSource):
    """The documents in the libraries of some sites, with the readers that Graph gives, and the pages of these sites.

    Graph does not give the readers of pages. They are `page_readers`; without them, no page is read.
    """

    is_divided = True

    def __init__(
        self,
        name: str,
        server: Http,
        sites: Sequence[str],
        clock: Clock,
        *,
        libraries: Sequence[str] = (),
        page_readers: frozenset[str] = frozenset(),
        identities: Mapping[str, frozenset[str]],
        open_labels: tuple[str, ...] = (),
    ) -> None:
        """Create the source. `sites` are addresses; `libraries` are names, none for all; `identities` is explained in
        SharePointAccess.
        """
        self.name = name
        self.server = server
        self._sites = sites
        self.clock = clock
        self._libraries = libraries
        self.page_readers = page_readers
        self._identities = identities
        self.open_labels = open_labels

    async def check(self) -> None:
        for address in self._sites:
            _, _, missing = await self._contents(address)
            if missing:
                raise SourceUnavailable(" ".join(missing))

    async def places(self) -> SourcePlaces:
        access = SharePointAccess(self.server, self._identities)
        places, refusals, are_all = list[SourcePlace](), list[str](), True
        for address in self._sites:
            try:
                site, libraries, missing = await self._contents(address)
            except Refused as error:
                # Only this site fails; the others are read.
                refusals.append(f"{address}: {error}")
                are_all = False
                continue
            refusals += missing
            places += (_LibraryPlace(self, site, library, address, access) for library in libraries)
            places.append(_PagesPlace(self, site, site, address, access))
        return SourcePlaces(places, refusals, are_all)

    async def _contents(self, address: str) -> tuple[Site, list[Library], list[str]]:
        """Return a site, its libraries that are wanted, and sentences about those that it lacks."""
        url = urlsplit(address)
        path = quote(unquote(url.path).rstrip("/"))
        site = await self.server.parsed(f"sites/{url.hostname}{':' if path else ''}{path}", _SITE)
        libraries: list[Library] = await graph_values(
            self.server, f"sites/{site.id}/drives", {"$select": "id,name"}, _LIBRARIES
        )
        wanted = [each for each in libraries if not self._libraries or each.name in self._libraries]
        missing = sorted({*self._libraries} - {each.name for each in wanted})
        return site, wanted, [f"{address} has no library {name!r} or hides it." for name in missing]


class _SharePointPlace(SourcePlace):
    """A library, or the pages of a site."""

    def __init__(
        self, source: SharePointSource, site: Site, scope: Library | Site, address: str, access: SharePointAccess
    ) -> None:
        self.id = scope.id
        self.label = f"{address}, {scope.name!r}"
        self._source = source
        self._site = site
        self._access = access
        self._server = source.server

    async def _parts(
        self,
        name: str,
        content: bytes,
        item: Item,
        readers: frozenset[str],
        people: tuple[tuple[str, ...], ...],
        title: str = "",
    ) -> list[Document | LeftOut | Entry]:
        """Return what is read of the content of a file or page, with what SharePoint knows about it."""
        source, path = self._source, PurePosixPath(name)
        dated = item.lastModifiedDateTime
        origin = FileOrigin(source.name, path, item.url, readers, source.open_labels, dated)
        return [
            replace(
                part,
                id=f"{source.name}/{self.id}/{item.id}{part.id.removeprefix(f'{source.name}/{path}')}",
                family=storable(self._site.displayName or self._site.name) or source.name,
                title=storable(title) or part.title,
                readers=narrowed(readers, part.readers),
                people=people,
            )
            if isinstance(part, Document)
            else replace(part, path=f"{item.name}{part.path.removeprefix(str(path))}")
            for part in await documents_of(origin, content)
        ]


class _LibraryPlace(_SharePointPlace):
    """The files of a library, each with readers of its own."""

    async def listing(self, position: Position, indexed: Indexed) -> AsyncIterator[ListingPart]:
        files, ids, reached = await self._changed(position, indexed)
        people = tuple(sorted({names for file in files.values() for names in file.people}))
        entries = list[Entry]()
        for item_id in sorted(ids):
            file, read = files.get(item_id), position.marks.get(item_id)
            with suppress(Gone):
                if file is None and (read is None or not read.version):  # a delta does not name it again
                    file = await self._file(item_id)
                name = file.name if file else read.name if read else item_id
                readers = await self._access.readers_of(self.id, item_id, name)
                document = partial(self._read, item_id, file, readers, people)
                entries.append(Entry(item_id, readers, file.version if file else None, document, name))
        yield ListingPart(entries, reached, left_out=(*reached.others, *self._access.noted()), is_whole=True)

    async def _changed(self, position: Position, indexed: Indexed) -> tuple[dict[str, File], Collection[str], Position]:
        """Return all documents, or those that changed; the ids of all that may be there; and the position reached."""
        now = self._source.clock.now().timestamp()
        if position.link and now - position.full_at < FULL_READ_EVERY.total_seconds():
            try:
                files, others, link = await self._delta(position.link)
                ids = (files.keys() | indexed.keys() | position.marks.keys()) - others.keys()
                return files, ids, replace(position, link=link)
            except Refused as error:
                if error.status not in LINK_REFUSED:
                    raise
                log.info("source_read_anew", source=self._source.name, place=self.label, reason=str(error))
        parameters = {"$select": FIELDS, "$top": "200"}
        files, others, link = await self._delta(f"drives/{self.id}/root/delta", parameters)
        return files, files.keys(), Position(link=link, full_at=now, others=of_other_formats(others.values()))

    async def _delta(
        self, address: str, parameters: Mapping[str, str] | None = None
    ) -> tuple[dict[str, File], dict[str, PurePosixPath], str]:
        """Read a delta to its end. Of an item that is named several times, the last one counts."""
        files, others, link = dict[str, File](), dict[str, PurePosixPath](), ""
        async for answer in graph_pages(self._server, address, parameters):
            for file in self._server.listed(answer, "value", _FILES):
                if file.is_document:
                    files[file.id] = file
                    others.pop(file.id, None)
                else:
                    others[file.id] = file.path if file.is_there else PurePosixPath()
                    files.pop(file.id, None)
            link = str(answer.get("@odata.deltaLink") or "")
        return files, others, link

    async def _file(self, item_id: str) -> File:
        address = f"drives/{self.id}/items/{item_id}"
        return await self._server.parsed(address, _FILE, {"$select": FIELDS})

    async def _read(
        self, item_id: str, listed: File | None, readers: frozenset[str], people: tuple[tuple[str, ...], ...]
    ) -> Sequence[Document | LeftOut | Entry]:
        file = listed or await self._file(item_id)
        if not file.name.isprintable():
            return [LeftOut(ascii(file.name), "The file's name contains characters that cannot be shown.")]
        if file.size > max_bytes(file.path):
            return [LeftOut(file.name, f"The file is larger than {max_bytes(file.path)} bytes.")]
        content = await self._server.body(f"drives/{self.id}/items/{item_id}/content")
        everybody = tuple(sorted({*self._access.people, *people}))
        return await self._parts(str(file.path), content, file, readers, everybody)


class _PagesPlace(_SharePointPlace):
    """The published pages of a site, which all have the same readers."""

    async def listing(self, position: Position, indexed: Indexed) -> AsyncIterator[ListingPart]:
        pages = dict[str, SitePage]()
        if self._source.page_readers:
            listed: list[SitePage] = await graph_values(self._server, self._address(), {"$select": PAGE_FIELDS}, _PAGES)
            pages = {page.id: page for page in listed}
            for page_id in sorted(indexed.keys() - pages.keys()):  # a change during the listing can hide others
                with suppress(Gone):
                    pages[page_id] = await self._page(page_id)
        people = tuple(sorted({names for page in pages.values() for names in page.people}))
        entries = [
            Entry(
                page.id,
                self._source.page_readers,
                page.version if page.is_published else None,
                partial(self._read, page, people),
                page.name,
            )
            for page in pages.values()
        ]
        yield ListingPart(entries, is_whole=True)

    async def _read(
        self, listed: SitePage, people: tuple[tuple[str, ...], ...]
    ) -> Sequence[Document | LeftOut | Entry]:
        page = await self._page(listed.id) if listed.is_published else listed
        if not page.is_published:
            raise Refused(DRAFT, 0)
        content = page.html.encode("utf-8", "replace")
        return await self._parts("page.html", content, page, self._source.page_readers, people, page.title)

    async def _page(self, page_id: str) -> SitePage:
        address = self._address(f"/{quote(page_id, safe='')}")
        return await self._server.parsed(address, _PAGE, {"$expand": "canvasLayout"})

    def _address(self, page: str = "") -> str:
        return f"sites/{self._site.id}/pages{page}/microsoft.graph.sitePage"


SiteAddress = Annotated[str, Field(pattern=r"^https://[^/?#\s]+[^?#\s]*$")]


class SharePointSection(GraphSection):
    """Document libraries and pages of SharePoint sites. `sites` are addresses, `libraries` names; none means all.

    People and groups that may read a file are known from Microsoft Graph; `identities` maps `site-group:NAME`, whose
    members Graph does not give, `group:ID` and `user:ID` to reader names. Graph does not say who may read a page:
    `page_readers` may read every page; none means that no page is read. With one of `open_labels`, such as `General`, a
    file or page stays open to those who may read it.
    """

    kind: Literal["sharepoint"]
    sites: Annotated[tuple[SiteAddress, ...], Field(min_length=1)]
    libraries: tuple[str, ...] = ()
    page_readers: tuple[str, ...] = ()
    open_labels: tuple[str, ...] = ()
    identities: Identities

    @property
    def place(self) -> str:
        return ", ".join(self.sites)

    def open(self, host: Host) -> SharePointSource:
        # Graph redirects downloads to the site's own host.
        return SharePointSource(
            self.name,
            replace(self.graph(host), elsewhere=frozenset(urlsplit(site).netloc for site in self.sites)),
            self.sites,
            host.clock,
            libraries=self.libraries,
            page_readers=frozenset(self.page_readers),
            identities=readers_of(self.identities),
            open_labels=self.open_labels,
        )
