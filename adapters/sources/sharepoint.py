"""Files and pages of SharePoint sites through Microsoft Graph.

https://learn.microsoft.com/graph/api/driveitem-delta · https://learn.microsoft.com/graph/api/driveitem-get-content
https://learn.microsoft.com/graph/api/sitepage-list · https://learn.microsoft.com/graph/api/sitepage-get

A library is first read completely; then the delta link returned by Graph leads to the changes, until Graph refuses it or
a month has passed. A delta does not reliably name files whose permissions changed, so each run asks who may read each
document, and reads again those whose readers changed. Pages are listed completely by each run; new and changed ones are
read. Required application permissions: Sites.Read.All (or Sites.Selected, with the role `read` for each site),
GroupMember.Read.All and Channel.ReadBasic.All.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Annotated, Literal, TypeVar
from urllib.parse import quote, unquote, urlsplit

import structlog
from pydantic import Field, TypeAdapter, ValidationError

from adapters.http import Gone, Http, Refused
from adapters.microsoft_graph import GraphSection, graph_pages, graph_values
from adapters.section import Host
from adapters.sources.formats import max_bytes, storable
from adapters.sources.front_matter import narrowed
from adapters.sources.parsing import FileOrigin, documents_of, of_other_formats
from adapters.sources.section import Identities, cursor_of, mark, positions_of, readers_of
from adapters.sources.sharepoint_items import File, Item, Library, SharePointAccess, Site, SitePage
from core.model.document import Document
from core.model.errors import SourceUnavailable
from core.ports import Clock, LeftOut, SourceChanges

BATCH = 25  # documents
FULL_READ_EVERY = timedelta(days=30)
LINK_REFUSED = frozenset({400, 404, 410})  # HTTP status codes for an expired delta link
UNAUTHORIZED = 401
FIELDS = "id,name,eTag,webUrl,size,file,deleted,lastModifiedDateTime,createdBy,lastModifiedBy"
PAGE_FIELDS = "id,name,title,eTag,webUrl,publishingState,lastModifiedDateTime,createdBy,lastModifiedBy"
DRAFT = "It is not published, so only its editors see it."

T = TypeVar("T")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Mark:
    """Digests of the version of an item that was read, empty if it must be read again, and of its readers."""

    version: str
    readers: str
    name: str


@dataclass(frozen=True, slots=True)
class _Position:
    """The position in a library or in the pages of a site: the `marks` of the items, and the delta `link`.

    It was read completely at `full_at` (seconds), when it also had files of `others`, which are no documents.
    """

    marks: Mapping[str, _Mark] = field(default_factory=dict[str, _Mark])
    link: str = ""
    full_at: float = 0.0
    others: tuple[LeftOut, ...] = ()


@dataclass(frozen=True, slots=True)
class _Part:
    documents: Sequence[Document]
    removed: Collection[str]
    position: _Position
    left_out: Sequence[LeftOut] = ()


_POSITIONS = TypeAdapter(dict[str, _Position])
_SITE, _LIBRARIES = TypeAdapter(Site), TypeAdapter(list[Library])
_FILE, _FILES = TypeAdapter(File), TypeAdapter(list[File])
_PAGE, _PAGES = TypeAdapter(SitePage), TypeAdapter(list[SitePage])


@dataclass(frozen=True, slots=True)
class _Due:
    """An item to read. `item` is None if a delta does not name it."""

    id: str
    name: str
    item: Item | None
    readers: frozenset[str]


_Fetch = Callable[[_Due], Awaitable[tuple[str, Sequence[Document | LeftOut]]]]
"""An item → its version and its documents. Raises Refused."""
_Indexed = Mapping[str, Collection[str]]
"""The ids of the indexed documents of each item."""


class SharePointSource:
    """The documents in the libraries of some sites, with the readers that Graph gives, and the pages of these sites.

    Graph does not give the readers of pages. They are `page_readers`; without them, no page is read.
    """

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
        self._server = server
        self._sites = sites
        self._clock = clock
        self._libraries = libraries
        self._page_readers = page_readers
        self._identities = identities
        self._open_labels = open_labels

    async def check(self) -> None:
        for address in self._sites:
            _, _, missing = await self._contents(address)
            if missing:
                raise SourceUnavailable(" ".join(missing))

    async def changes(self, cursor: str, known_ids: frozenset[str]) -> AsyncIterator[SourceChanges]:
        positions, indexed = positions_of(cursor, _POSITIONS), self._by_scope(known_ids)
        access = SharePointAccess(self._server, self._identities)
        wanted, refusals, all_listed = set[str](), list[str](), True
        for address in self._sites:
            try:
                site, libraries, missing = await self._contents(address)
            except Refused as error:
                # Only this site fails; the others are read.
                refusals.append(f"{address}: {error}")
                all_listed = False
                continue
            refusals += missing
            for scope in (*libraries, site):
                wanted.add(scope.id)
                state = positions.get(scope.id, _Position()), indexed.get(scope.id, {})
                try:
                    async for part in (
                        self._pages(scope, *state)
                        if isinstance(scope, Site)
                        else self._library(site, scope, *state, access)
                    ):
                        positions[scope.id] = part.position
                        yield SourceChanges(
                            tuple(part.documents), frozenset(part.removed), cursor_of(positions), tuple(part.left_out)
                        )
                except Refused as error:
                    # Only this library fails; the others are read.
                    refusals.append(f"{address}, {scope.name!r}: {error}")
        left = {scope for scope in indexed if scope not in wanted} if all_listed else ()
        removed = frozenset(known_id for scope in left for ids in indexed[scope].values() for known_id in ids)
        kept = {scope: position for scope, position in positions.items() if scope not in left}
        yield SourceChanges((), removed, cursor_of(kept), tuple(access.notes))
        if refusals:
            raise SourceUnavailable(" ".join(refusals))

    async def _contents(self, address: str) -> tuple[Site, list[Library], list[str]]:
        """Return a site, its libraries that are wanted, and sentences about those that it lacks."""
        url = urlsplit(address)
        path = quote(unquote(url.path).rstrip("/"))
        site = _valid(_SITE, await self._server.get(f"sites/{url.hostname}{':' if path else ''}{path}"), "a site")
        values = await graph_values(self._server, f"sites/{site.id}/drives", {"$select": "id,name"})
        libraries = _valid(_LIBRARIES, values, "a library")
        wanted = [each for each in libraries if not self._libraries or each.name in self._libraries]
        missing = sorted({*self._libraries} - {each.name for each in wanted})
        return site, wanted, [f"{address} has no library {name!r} or hides it." for name in missing]

    async def _library(
        self, site: Site, library: Library, position: _Position, indexed: _Indexed, access: SharePointAccess
    ) -> AsyncIterator[_Part]:
        files, others, link, is_whole = await self._listed(library, position)
        ids, gone = set(files), set(others)
        if is_whole:
            gone |= indexed.keys() - ids
        else:
            ids |= (indexed.keys() | position.marks.keys()) - gone
        labels = {item_id: mark.name for item_id, mark in position.marks.items()}
        labels |= {item_id: file.name for item_id, file in files.items()}
        names = {item_id: labels.get(item_id, item_id) for item_id in sorted(ids)}
        rights = await self._rights(library, names, access)
        gone |= names.keys() - rights.keys()
        people = tuple(sorted(access.people.union(*(file.people for file in files.values()))))
        due = [
            _Due(item_id, names[item_id], files.get(item_id), readers)
            for item_id, readers in rights.items()
            if _is_due(position.marks.get(item_id), files.get(item_id), readers) or item_id not in indexed
        ]

        async def fetch(each: _Due) -> tuple[str, Sequence[Document | LeftOut]]:
            address = f"drives/{library.id}/items/{each.id}"
            file = each.item or _valid(_FILE, await self._server.get(address, {"$select": FIELDS}), "a file")
            assert isinstance(file, File)
            return file.version, await self._file(address, library, file, each.readers, site, people)

        kept = {item_id: mark for item_id, mark in position.marks.items() if item_id in rights}
        reached = replace(position, marks=kept)
        async for part in self._read(due, reached, indexed, fetch):
            reached = part.position
            yield part
        if is_whole:
            now = self._clock.now().timestamp()
            reached = replace(reached, full_at=now, others=of_other_formats(others.values()))
        removed = {known_id for item_id in gone for known_id in indexed.get(item_id, ())}
        yield _Part((), removed, replace(reached, link=link), reached.others)

    async def _rights(
        self, library: Library, names: Mapping[str, str], access: SharePointAccess
    ) -> dict[str, frozenset[str]]:
        """Return the readers of each of these files that is still there."""
        rights = dict[str, frozenset[str]]()
        for item_id, name in names.items():
            with suppress(Gone):
                rights[item_id] = await access.readers_of(library.id, item_id, name)
        return rights

    async def _listed(
        self, library: Library, position: _Position
    ) -> tuple[dict[str, File], dict[str, PurePosixPath], str, bool]:
        """Return the documents, the paths of everything else that is or was there, the next delta link, and whether
        this is the whole library or only what changed.
        """
        is_old = self._clock.now().timestamp() - position.full_at >= FULL_READ_EVERY.total_seconds()
        if position.link and not is_old:
            try:
                return *(await self._delta(position.link)), False
            except Refused as error:
                if error.status not in LINK_REFUSED:
                    raise
                log.info("source_read_anew", source=self.name, library=library.name, reason=str(error))
        return *(await self._delta(f"drives/{library.id}/root/delta", {"$select": FIELDS, "$top": "200"})), True

    async def _delta(
        self, address: str, parameters: Mapping[str, str] | None = None
    ) -> tuple[dict[str, File], dict[str, PurePosixPath], str]:
        """Read a delta to its end. Of an item that is named several times, the last one counts."""
        files, others, link = dict[str, File](), dict[str, PurePosixPath](), ""
        async for answer in graph_pages(self._server, address, parameters):
            for file in _valid(_FILES, answer.get("value"), "a file"):
                if file.is_document:
                    files[file.id] = file
                    others.pop(file.id, None)
                else:
                    others[file.id] = file.path if file.is_there else PurePosixPath()
                    files.pop(file.id, None)
            link = str(answer.get("@odata.deltaLink") or "")
        return files, others, link

    async def _pages(self, site: Site, position: _Position, indexed: _Indexed) -> AsyncIterator[_Part]:
        address = f"sites/{site.id}/pages"
        values = (
            await graph_values(self._server, f"{address}/microsoft.graph.sitePage", {"$select": PAGE_FIELDS})
            if self._page_readers
            else ()
        )
        pages = {page.id: page for page in _valid(_PAGES, values, "a page")}
        people = tuple(sorted({names for page in pages.values() for names in page.people}))
        due = [
            _Due(page.id, page.name, page, self._page_readers)
            for page in pages.values()
            if page.is_published
            and (page.id not in indexed or _is_due(position.marks.get(page.id), page, self._page_readers))
        ]

        async def fetch(each: _Due) -> tuple[str, Sequence[Document | LeftOut]]:
            content = {"$expand": "canvasLayout"}
            page = _valid(
                _PAGE, await self._server.get(f"{address}/{each.id}/microsoft.graph.sitePage", content), "a page"
            )
            if not page.is_published:
                raise Refused(DRAFT, 0)
            origin = FileOrigin(self.name, PurePosixPath("page.html"), page.url, each.readers, self._open_labels)
            parts = await documents_of(origin, page.html.encode("utf-8", "replace"))
            return page.version, self._placed(parts, origin, page, site.id, site, people, page.title)

        gone = [page_id for page_id in sorted(indexed.keys() - pages.keys()) if not await self._has_page(site, page_id)]
        reached = replace(position, marks={key: mark for key, mark in position.marks.items() if key in pages})
        async for part in self._read(due, reached, indexed, fetch):
            reached = part.position
            yield part
        removed = {known_id for page_id in gone for known_id in indexed[page_id]}
        drafts = (page for page in pages.values() if not page.is_published and page.id not in indexed)
        yield _Part((), removed, reached, [LeftOut(page.name, DRAFT) for page in drafts])

    async def _has_page(self, site: Site, page_id: str) -> bool:
        """Return whether a page that is not listed is there: a change during the listing can hide others."""
        if not self._page_readers:
            return False
        try:
            await self._server.get(f"sites/{site.id}/pages/{quote(page_id, safe='')}/microsoft.graph.sitePage")
        except Gone:
            return False
        return True

    async def _read(
        self, due: Sequence[_Due], position: _Position, indexed: _Indexed, fetch: _Fetch
    ) -> AsyncIterator[_Part]:
        """Read items in batches. An item that cannot be read is named, and stays as it was if its readers are the same."""
        marks = dict(position.marks)
        for start in range(0, len(due), BATCH):
            documents, removed, left_out = list[Document](), set[str](), list[LeftOut]()
            for each in due[start : start + BATCH]:
                before, old, readers = indexed.get(each.id, ()), marks.get(each.id), mark("", each.readers)
                try:
                    version, parts = await fetch(each)
                except Refused as error:
                    if error.status == UNAUTHORIZED:
                        raise
                    left_out.append(LeftOut(each.name, str(error)))
                    removed |= {*before} if old is None or old.readers != readers else set()
                    marks[each.id] = _Mark("", readers, each.name)
                    continue
                read = [part for part in parts if isinstance(part, Document) and part.text.strip()]
                documents += read
                left_out += [part for part in parts if isinstance(part, LeftOut)]
                removed |= {*before} - {document.id for document in read}
                marks[each.id] = _Mark(mark("", [version]) if version else "", readers, each.name)
            yield _Part(documents, removed, replace(position, marks=dict(marks)), left_out)

    async def _file(
        self,
        address: str,
        library: Library,
        file: File,
        readers: frozenset[str],
        site: Site,
        people: tuple[tuple[str, ...], ...],
    ) -> Sequence[Document | LeftOut]:
        if not file.name.isprintable():
            return [LeftOut(ascii(file.name), "The file's name contains characters that cannot be shown.")]
        if file.size > max_bytes(file.path):
            return [LeftOut(file.name, f"The file is larger than {max_bytes(file.path)} bytes.")]
        origin = FileOrigin(self.name, file.path, file.url, readers, self._open_labels)
        parts = await documents_of(origin, await self._server.body(f"{address}/content"))
        return self._placed(parts, origin, file, library.id, site, people)

    def _placed(
        self,
        parts: Iterable[Document | LeftOut],
        origin: FileOrigin,
        item: Item,
        scope: str,
        site: Site,
        people: tuple[tuple[str, ...], ...],
        title: str = "",
    ) -> list[Document | LeftOut]:
        """Return what was read of a file or page with what SharePoint knows about it."""
        own = f"{self.name}/{origin.path}"
        return [
            replace(
                part,
                id=f"{self.name}/{scope}/{item.id}{part.id.removeprefix(own)}",
                family=storable(site.displayName or site.name) or self.name,
                title=storable(title) or part.title,
                updated_at=part.updated_at or item.lastModifiedDateTime,
                readers=narrowed(origin.readers, part.readers),
                people=people,
            )
            if isinstance(part, Document)
            else replace(part, path=f"{item.name}{part.path.removeprefix(str(origin.path))}")
            for part in parts
        ]

    def _by_scope(self, known_ids: frozenset[str]) -> dict[str, dict[str, set[str]]]:
        """Return the indexed documents of each item, by library or site."""
        scopes = dict[str, dict[str, set[str]]]()
        for known_id in known_ids:
            scope, _, item = known_id.removeprefix(f"{self.name}/").partition("/")
            scopes.setdefault(scope, {}).setdefault(item.partition("#")[0], set()).add(known_id)
        return scopes


def _is_due(read: _Mark | None, item: Item | None, readers: frozenset[str]) -> bool:
    """Return whether an item, which is None if it did not change, must be read."""
    return (
        read is None
        or not read.version
        or read.readers != mark("", readers)
        or (item is not None and read.version != mark("", [item.version]))
    )


def _valid(kind: TypeAdapter[T], value: object, what: str) -> T:
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        raise Refused(f"Microsoft Graph describes {what} in an unexpected format.", 0) from error


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
