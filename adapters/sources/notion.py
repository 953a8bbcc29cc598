"""Pages of Notion that are shared with an integration.

https://developers.notion.com/reference/post-search · https://developers.notion.com/reference/get-block-children
https://developers.notion.com/reference/retrieve-a-page · https://developers.notion.com/reference/request-limits

Each run lists the pages by a search. A search does not promise to return all pages, so an indexed page that is missing is
asked for by its id, and pages that stand in a page are read too. New and changed pages are read block by block. Notion's
API does not say who may read a page.

https://developers.notion.com/reference/page · https://developers.notion.com/reference/block
https://developers.notion.com/reference/rich-text · https://developers.notion.com/reference/page-property-values
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from html import escape
from itertools import groupby
from pathlib import PurePosixPath
from typing import Annotated, Any, Generic, Literal, TypeVar
from urllib.parse import quote

import structlog
from pydantic import AliasPath, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from adapters.html import LANGUAGE
from adapters.http import Gone, Http, Moment, Refused, Token, followed, source_server
from adapters.section import EnvironmentName, Host
from adapters.sources.document_properties import NOBODY, Properties, Stated, narrowed, properties_of
from adapters.sources.formats import storable, web_address
from adapters.sources.parsing import FileOrigin, documents_of, placed
from adapters.sources.section import (
    UNAUTHORIZED,
    Entry,
    Indexed,
    ListingPart,
    OnePlace,
    Position,
    Readers,
    SourceSection,
)
from core.model.document import Document
from core.model.errors import MalformedInput, SourceUnavailable
from core.model.text import missing_part
from core.ports import Clock, LeftOut

Id = Annotated[str, Field(pattern=r"^[0-9a-fA-F-]{32,36}$")]
LISTS = {"bulleted_list_item": "ul", "numbered_list_item": "ol", "to_do": "ul"}
FILES = frozenset({"audio", "file", "image", "pdf", "video"})
LINKS = frozenset({"bookmark", "embed", "link_preview"})
EMPTY = frozenset(
    "audio breadcrumb bulleted_list_item callout code column column_list divider embed equation file heading_1 heading_2 "
    "heading_3 heading_4 image numbered_list_item paragraph pdf quote table table_of_contents table_row to_do toggle "
    "video".split()
)
"""Blocks that may have nothing to read; any other one without text holds something that the API does not show."""
OTHER_PAGES = frozenset({"child_database", "child_page"})  # blocks whose children are other pages
NO_LANGUAGE = "plain text"
NOTHING = (None, "", [], {})  # values of properties that state nothing


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class _Annotations(_Model):
    bold: bool = False
    italic: bool = False
    strikethrough: bool = False
    code: bool = False


class RichText(_Model):
    """A piece of text in one style. `mentioned` is the name of a person who is mentioned."""

    type: str = "text"
    plain_text: str = ""
    href: str | None = None
    annotations: _Annotations = _Annotations()
    mentioned: str | None = Field(None, validation_alias=AliasPath("mention", "user", "name"))

    @property
    def html(self) -> str:
        text = escape(self.plain_text).replace("\n", "<br/>")
        style = self.annotations
        if style.code or self.type == "equation":
            text = f"<code>{text}</code>"
        for tag, applies in (("strong", style.bold), ("em", style.italic), ("s", style.strikethrough)):
            text = f"<{tag}>{text}</{tag}>" if applies and text.strip() else text
        return _link(text, self.href) if self.href else text


class Body(_Model):
    """The content of a block; each type of block has some of these fields."""

    rich_text: list[RichText] = []
    caption: list[RichText] = []
    cells: list[list[RichText]] = []
    language: str | None = None
    checked: bool = False
    has_column_header: bool = False
    has_row_header: bool = False
    url: str | None = None
    expression: str | None = None
    title: str | None = None
    name: str | None = None
    page_id: str | None = None

    @property
    def texts(self) -> Iterator[RichText]:
        yield from self.rich_text
        yield from self.caption
        for cell in self.cells:
            yield from cell


class BlockObject(_Model, extra="allow"):
    """A block as it is returned, without its children."""

    id: Id
    type: str
    has_children: bool = False

    @property
    def body(self) -> Body:
        """Return the content; nothing of one of a new kind that is not understood. Raises Refused."""
        try:
            return Body.model_validate((self.model_extra or {}).get(self.type, {}))
        except ValidationError as error:
            if self.type in EMPTY:
                raise Refused(f"Notion describes a block of type {self.type!r} in an unexpected format.", 0) from error
            return Body()


@dataclass(frozen=True, slots=True)
class NotionBlock:
    """A block with its children."""

    id: str
    type: str
    body: Body
    children: Sequence[NotionBlock] = ()

    @property
    def people(self) -> Iterator[str]:
        """Yield the names of people who are mentioned in it."""
        yield from (text.mentioned for text in self.body.texts if text.mentioned)
        for child in self.children:
            yield from child.people

    @property
    def pages(self) -> Iterator[str]:
        """Yield the ids of the pages that stand in it."""
        if self.type == "child_page":
            yield self.id
        for child in self.children:
            yield from child.pages


class NotionPage(_Model):
    id: Id
    url: str = ""
    last_edited_time: Moment
    in_trash: bool = False
    properties: dict[str, dict[str, Any]] = {}

    @property
    def title(self) -> str:
        titles = (each.get("title") for each in self.properties.values() if each.get("type") == "title")
        return storable("".join(_plain(next(titles, None)))).strip() or "Untitled"

    def stated(self) -> Properties:
        """Return what the properties of a page in a database state, like those of a file's front matter.

        Raises MalformedInput if one of them speaks of access and is not understood.
        """
        values = {
            name: _value(str(each.get("type")), value)
            for name, each in self.properties.items()
            if each.get("type") != "title" and (value := each.get(str(each.get("type")))) not in NOTHING
        }
        return properties_of(Stated([*values.items()]))


def _value(kind: str, value: Any) -> str | list[str]:
    """Return the value of a property; a question mark if it is of a kind that states nothing in words."""
    match kind, value:
        case "rich_text", list():
            return "".join(_plain(value))
        case "select" | "status", {"name": str(name)}:
            return name
        case "multi_select", list():
            return _names(value)
        case "people", list():
            return ", ".join(_names(value)) or "?"
        case "checkbox", bool():
            return str(value).lower()
        case "date", {"start": str(start)}:
            return start
        case "url" | "email" | "phone_number" | "created_time" | "last_edited_time", str():
            return value
        case _:
            return "?"


def _plain(value: Any) -> Iterator[str]:
    values: list[Any] = value if isinstance(value, list) else []
    return (str(each.get("plain_text") or "") for each in values if isinstance(each, dict))


def _names(values: list[Any]) -> list[str]:
    return [str(each["name"]) for each in values if isinstance(each, dict) and each.get("name")]


def html_of(blocks: Sequence[NotionBlock]) -> str:
    """Return the HTML of blocks. Items of a list that follow each other are one list."""
    parts = list[str]()
    for tag, group in groupby(blocks, key=lambda block: LISTS.get(block.type, "")):
        if tag:
            parts.append(f"<{tag}>{''.join(map(_item, group))}</{tag}>")
        else:
            parts += map(_block, group)
    return "".join(parts)


def _item(block: NotionBlock) -> str:
    box = ("[x] " if block.body.checked else "[ ] ") if block.type == "to_do" else ""
    return f"<li>{box}{_inline(block.body.rich_text)}{html_of(block.children)}</li>"


def _block(block: NotionBlock) -> str:
    """Return the HTML of a block, or the name of its kind if nothing of it can be shown."""
    shown = _shown(block)
    if shown or block.type in EMPTY:
        return shown
    target = f"/{block.body.page_id}" if block.body.page_id else f"#{block.id}"
    named = missing_part(f"a block of the kind {block.type}", target.replace("-", ""))
    return f"<p>{escape(named)}</p>"


def _shown(block: NotionBlock) -> str:
    body, kind = block.body, block.type
    own = _BLOCKS.get(kind)
    if own is not None:
        return own(block)
    if kind in FILES:
        name = _inline(body.caption) or escape(body.name or "")
        return f"<p>({kind}: {name})</p>" if name else ""
    if kind in LINKS:
        return f"<p>{_link(_inline(body.caption) or escape(body.url or ''), body.url or '')}</p>"
    if kind.startswith("heading_") and kind[8:] in ("1", "2", "3", "4"):
        return f"<h{kind[8:]}>{_inline(body.rich_text)}</h{kind[8:]}>{html_of(block.children)}"
    # Toggles, callouts, columns, synced blocks, and whatever Notion adds.
    text = f"<p>{_inline(body.rich_text)}</p>" if body.rich_text else ""
    return f"{text}<div>{html_of(block.children)}</div>" if block.children else text


def _code(block: NotionBlock) -> str:
    language = block.body.language or NO_LANGUAGE
    named = "" if language == NO_LANGUAGE else escape(language.split()[0])
    code = escape("".join(text.plain_text for text in block.body.rich_text if not text.annotations.strikethrough))
    caption = f"<p>{_inline(block.body.caption)}</p>" if block.body.caption else ""
    return f'<pre {LANGUAGE}="{named}">{code}</pre>{caption}'


def _table(block: NotionBlock) -> str:
    rows = list[str]()
    is_header, is_named = block.body.has_column_header, block.body.has_row_header
    for number, row in enumerate(block.children):
        cells = [
            f"<{tag}>{_inline(cell)}</{tag}>"
            for column, cell in enumerate(row.body.cells)
            for tag in (("th" if (is_header and number == 0) or (is_named and column == 0) else "td"),)
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table>{''.join(rows)}</table>"


def _other_page(block: NotionBlock) -> str:
    title = escape(block.body.title or "")
    target = block.id.replace("-", "")
    return f"<p>{_link(title, f'/{target}')}</p>" if title else ""


_BLOCKS: dict[str, Callable[[NotionBlock], str]] = {
    "quote": lambda block: f"<blockquote><p>{_inline(block.body.rich_text)}</p>{html_of(block.children)}</blockquote>",
    "code": _code,
    "equation": lambda block: f"<pre>{escape(block.body.expression or '')}</pre>",
    "table": _table,
    "child_page": _other_page,
    "child_database": _other_page,
}
"""The HTML of blocks that are not text with children."""


def _inline(texts: Sequence[RichText]) -> str:
    return "".join(text.html for text in texts)


def _link(text: str, target: str) -> str:
    """Return a link; only its text if the target is neither a web address nor a page of Notion."""
    is_safe = target.startswith(("https://", "http://", "/"))
    return f'<a href="{escape(target)}">{text}</a>' if is_safe and text else text


NOTION_URL = "https://api.notion.com"
HEADERS = {"Notion-Version": "2026-03-11"}
PAGE_SIZE = 100  # results of a request; the maximum
MAX_BLOCKS = 10_000  # of a page
MAX_DEPTH = 40  # levels of nested blocks
SETTLING = timedelta(minutes=5)  # after an edit; times of edits are whole minutes, and clocks differ

T = TypeVar("T")

log = structlog.get_logger()


class _List(BaseModel, Generic[T]):
    results: list[T] = []
    next_cursor: str | None = None


class _User(BaseModel):
    name: str | None = None
    type: str = ""
    email: str | None = Field(None, validation_alias=AliasPath("person", "email"))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.name, self.email))) if self.name and self.type == "person" else ()


_PAGE, _PAGES = TypeAdapter(NotionPage), TypeAdapter(_List[NotionPage])
_CHILDREN, _USERS = TypeAdapter(_List[BlockObject]), TypeAdapter(_List[_User])
_SEARCH = {
    "filter": {"property": "object", "value": "page"},
    "sort": {"timestamp": "last_edited_time", "direction": "ascending"},
}


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
        search = {**_SEARCH, "page_size": 1}
        if not (await self._server.parsed("v1/search", _PAGES, value=search)).results:
            raise SourceUnavailable(f"{self.name}: Notion shows no page. Share pages with the integration.")

    async def listing(self, position: Position, indexed: Indexed) -> AsyncIterator[ListingPart]:
        pages = {page.id: page async for page in self._all("v1/search", _PAGES, _SEARCH) if not page.in_trash}
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

    async def _page(self, page_id: str) -> NotionPage | None:
        """Return a page; None if it is deleted, in the trash or no longer shared."""
        try:
            page = await self._server.parsed(f"v1/pages/{quote(page_id, safe='')}", _PAGE)
        except Gone:
            return None
        return None if page.in_trash else page

    async def _people(self) -> frozenset[tuple[str, ...]]:
        """Return the names and addresses of the workspace's members; none without the capability to read them."""
        try:
            users = [user async for user in self._all("v1/users", _USERS)]
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
        pages = placed(
            await documents_of(origin, html_of(blocks).encode("utf-8", "replace")),
            page.title,
            id=f"{self.name}/{page.id}",
            family=self.name,
            title=page.title,
            owner=storable(stated.owner),
            updated_at=stated.updated_at or page.last_edited_time,
            readers=readers,
            people=tuple(sorted(people | named)),
        )
        parts: list[Document | LeftOut | Entry] = [*pages]
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
        async for block in self._all(f"v1/blocks/{quote(parent, safe='')}/children", _CHILDREN):
            reading.blocks += 1
            if reading.blocks > MAX_BLOCKS:
                raise MalformedInput(f"The page has more than {MAX_BLOCKS} blocks.")
            children = list[NotionBlock]()
            if block.has_children and block.type not in OTHER_PAGES:
                try:
                    children = await self._blocks(block.id, reading, depth + 1)
                except Gone:
                    reading.hidden.append(
                        "A part of it belongs to another page that is not shared with the integration."
                    )
            blocks.append(NotionBlock(block.id, block.type, block.body, children))
        return blocks

    async def _all(
        self, address: str, kind: TypeAdapter[_List[T]], search: Mapping[str, Any] | None = None
    ) -> AsyncIterator[T]:
        """Yield the results of all pages of a list, or of a search that is posted."""
        query, before = {"page_size": str(PAGE_SIZE)}, set[str]()
        while True:
            posted = search and {**search, **query, "page_size": PAGE_SIZE}
            page = await self._server.parsed(address, kind, None if posted else query, value=posted)
            for result in page.results:
                yield result
            if not page.next_cursor:
                return
            query |= {"start_cursor": followed(page.next_cursor, before, self._server.system)}


class _Reading:
    """The progress of reading one page: how many blocks it has, and what of it is hidden."""

    def __init__(self) -> None:
        self.blocks = 0
        self.hidden: list[str] = []


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
