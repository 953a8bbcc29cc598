"""Pages of Notion that are shared with an integration.

https://developers.notion.com/reference/post-search · https://developers.notion.com/reference/get-block-children
https://developers.notion.com/reference/retrieve-a-page · https://developers.notion.com/reference/request-limits

Each run lists the pages by a search. A search does not promise to return all pages, so an indexed page that is missing is
asked for by its id, and pages that stand in a page are read too. New and changed pages are read block by block. Notion's
API does not say who may read a page.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import structlog
from pydantic import AliasPath, BaseModel, Field, TypeAdapter, ValidationError

from adapters.http import Gone, Http, Refused, Token, followed, source_server
from adapters.section import EnvironmentName, Host
from adapters.sources.changes import Entry, Indexed, ListingPart, OnePlace, Position
from adapters.sources.formats import storable, web_address
from adapters.sources.front_matter import NOBODY, narrowed
from adapters.sources.notion_blocks import OTHER_PAGES, BlockObject, Body, NotionBlock, NotionPage, html_of
from adapters.sources.parsing import FileOrigin, documents_of
from adapters.sources.section import Readers, SourceSection
from core.model.document import Document
from core.model.errors import MalformedInput, SourceUnavailable
from core.ports import Clock, LeftOut

NOTION_URL = "https://api.notion.com"
HEADERS = {"Notion-Version": "2026-03-11"}
PAGE_SIZE = 100  # results of a request; the maximum
MAX_BLOCKS = 10_000  # of a page
MAX_DEPTH = 40  # levels of nested blocks
SETTLING = timedelta(minutes=5)  # after an edit; times of edits are whole minutes, and clocks differ
UNAUTHORIZED = 401

T = TypeVar("T")

log = structlog.get_logger()


class _List(BaseModel):
    results: list[Any] = []
    next_cursor: str | None = None


class _User(BaseModel):
    name: str | None = None
    type: str = ""
    email: str | None = Field(None, validation_alias=AliasPath("person", "email"))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.name, self.email))) if self.name and self.type == "person" else ()


_LIST, _PAGE, _BLOCK, _USER = TypeAdapter(_List), TypeAdapter(NotionPage), TypeAdapter(BlockObject), TypeAdapter(_User)


class NotionSource(OnePlace):
    """The pages that are shared with an integration, each readable by `readers`.

    A page in a database may have fewer readers, which its property `Readers` states.
    """

    def __init__(self, name: str, server: Http, readers: frozenset[str], clock: Clock) -> None:
        self.name = name
        self._server = server
        self._readers = readers
        self._clock = clock

    async def check(self) -> None:
        if not (await self._search(1)).results:
            raise SourceUnavailable(f"{self.name}: Notion shows no page. Share pages with the integration.")

    async def listing(self, position: Position, indexed: Indexed) -> AsyncIterator[ListingPart]:
        pages = await self._listed()
        for page_id in sorted((indexed.keys() | position.marks.keys()) - pages.keys()):
            if page := await self._page(page_id):
                pages[page_id] = page
        people = await self._people()
        yield ListingPart([self._entry(page, people) for page in pages.values()], is_whole=True)

    def _entry(self, page: NotionPage, people: frozenset[tuple[str, ...]]) -> Entry:
        try:
            stated = page.stated().readers
        except MalformedInput:  # which is said when it is read
            stated = frozenset({NOBODY})
        is_settled = self._clock.now() - page.last_edited_time > SETTLING  # else it may change without another version
        version = page.last_edited_time.isoformat() if is_settled else ""
        readers = narrowed(self._readers, stated or self._readers)
        return Entry(page.id, readers, version, partial(self._parts, page, readers, people), page.title)

    async def _listed(self) -> dict[str, NotionPage]:
        pages, before = dict[str, NotionPage](), set[str]()
        answer = await self._search(PAGE_SIZE)
        while True:
            pages |= {page.id: page for result in answer.results if not (page := _valid(_PAGE, result)).in_trash}
            if not answer.next_cursor:
                return pages
            answer = await self._search(PAGE_SIZE, followed(answer.next_cursor, before, self._server.system))

    async def _search(self, size: int, start: str = "") -> _List:
        order = {"timestamp": "last_edited_time", "direction": "ascending"}
        query = {"filter": {"property": "object", "value": "page"}, "sort": order, "page_size": size}
        answer = await self._server.answer("v1/search", value=query | ({"start_cursor": start} if start else {}))
        return _valid(_LIST, answer.body)

    async def _page(self, page_id: str) -> NotionPage | None:
        """Return a page; None if it is deleted, in the trash or no longer shared."""
        try:
            page = _valid(_PAGE, await self._server.get(f"v1/pages/{quote(page_id, safe='')}"))
        except Gone:
            return None
        return None if page.in_trash else page

    async def _people(self) -> frozenset[tuple[str, ...]]:
        """Return the names and addresses of the workspace's members; none without the capability to read them."""
        try:
            users = [_valid(_USER, each) async for each in self._results("v1/users")]
        except Refused as error:
            if error.status == UNAUTHORIZED:
                raise
            log.info("people_unknown", source=self.name, reason=str(error))
            return frozenset()
        return frozenset(user.names for user in users if user.names)

    async def _parts(
        self, page: NotionPage, readers: frozenset[str], people: frozenset[tuple[str, ...]]
    ) -> list[Document | LeftOut | Entry]:
        """Read a page, and return its document, what of it is left out, and the pages that stand in it.

        Raises MalformedInput if it is withheld or too large, and Refused if it cannot be read.
        """
        stated = page.stated()
        reading = _Reading()
        blocks = await self._blocks(page.id, reading, 0)
        named = {(name,) for block in blocks for name in block.people} - {(names[0],) for names in people}
        origin = FileOrigin(self.name, PurePosixPath("page.html"), web_address(page.url), self._readers)
        parts = list[Document | LeftOut | Entry]()
        for part in await documents_of(origin, html_of(blocks).encode("utf-8", "replace")):
            if isinstance(part, LeftOut):
                parts.append(replace(part, path=page.title))
                continue
            parts.append(
                replace(
                    part,
                    id=f"{self.name}/{page.id}",
                    family=self.name,
                    title=page.title,
                    owner=storable(stated.owner),
                    updated_at=stated.updated_at or page.last_edited_time,
                    readers=readers,
                    people=tuple(sorted(people | named)),
                )
            )
        reasons = (*reading.hidden, stated.note)
        parts += (LeftOut(page.title, reason, is_indexed=True) for reason in reasons if reason)
        for page_id in sorted({page_id for block in blocks for page_id in block.pages}):
            if inner := await self._page(page_id):
                parts.append(self._entry(inner, people))
        return parts

    async def _blocks(self, parent: str, reading: _Reading, depth: int) -> list[NotionBlock]:
        """Return the blocks in a page or block with their children. Raises MalformedInput and Refused."""
        if depth > MAX_DEPTH:
            raise MalformedInput(f"The page has blocks that are nested deeper than {MAX_DEPTH} levels.")
        blocks = list[NotionBlock]()
        async for result in self._results(f"v1/blocks/{quote(parent, safe='')}/children"):
            reading.blocks += 1
            if reading.blocks > MAX_BLOCKS:
                raise MalformedInput(f"The page has more than {MAX_BLOCKS} blocks.")
            block = _valid(_BLOCK, result)
            children = list[NotionBlock]()
            if block.has_children and block.type not in OTHER_PAGES:
                try:
                    children = await self._blocks(block.id, reading, depth + 1)
                except Gone:
                    reading.hidden.append(
                        "A part of it belongs to another page that is not shared with the integration."
                    )
            blocks.append(NotionBlock(block.id, block.type, _checked(block), children))
        return blocks

    async def _results(self, address: str) -> AsyncIterator[Any]:
        """Yield the results of all pages of a list."""
        query, before = {"page_size": str(PAGE_SIZE)}, set[str]()
        while True:
            answer = _valid(_LIST, await self._server.get(address, query))
            for result in answer.results:
                yield result
            if not answer.next_cursor:
                return
            query = query | {"start_cursor": followed(answer.next_cursor, before, self._server.system)}


class _Reading:
    """The progress of reading one page: how many blocks it has, and what of it is hidden."""

    def __init__(self) -> None:
        self.blocks = 0
        self.hidden: list[str] = []


def _checked(block: BlockObject) -> Body:
    try:
        return block.body
    except ValidationError as error:
        raise Refused(f"Notion describes a block of type {block.type!r} in an unexpected format.", 0) from error


def _valid(kind: TypeAdapter[T], value: object) -> T:
    try:
        return kind.validate_json(value) if isinstance(value, bytes) else kind.validate_python(value)
    except ValidationError as error:
        raise Refused("Notion answered in an unexpected format.", 0) from error


class NotionSection(SourceSection):
    """The pages of Notion that are shared with an integration, whose secret is in the variable `token_env`.

    Notion does not say who may read a page: `readers` may read all of these pages.
    """

    kind: Literal["notion"]
    token_env: EnvironmentName
    readers: Readers

    @property
    def place(self) -> str:
        return "pages shared with the integration"

    def open(self, host: Host) -> NotionSource:
        token = Token(f"Bearer {host.settings.secret(self.token_env, self.name)}")
        server = replace(source_server("Notion", NOTION_URL, host.session, token), headers=HEADERS)
        return NotionSource(self.name, server, frozenset(self.readers), host.clock)
