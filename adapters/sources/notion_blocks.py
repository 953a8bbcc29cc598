"""Pages and blocks of Notion as its API returns them, and their HTML.

https://developers.notion.com/reference/page · https://developers.notion.com/reference/block
https://developers.notion.com/reference/rich-text · https://developers.notion.com/reference/page-property-values
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any

from pydantic import AliasPath, BaseModel, ConfigDict, Field, ValidationError

from adapters.edge import Moment
from adapters.html import LANGUAGE
from adapters.sources.formats import storable
from adapters.sources.front_matter import Properties, Stated, properties_of
from core.model.text import missing_part

ID = r"^[0-9a-fA-F-]{32,36}$"
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

    id: str = Field(pattern=ID)
    type: str
    has_children: bool = False

    @property
    def body(self) -> Body:
        """Return the content; nothing of one of a new kind that is not understood. Raises ValidationError."""
        try:
            return Body.model_validate((self.model_extra or {}).get(self.type, {}))
        except ValidationError:
            if self.type in EMPTY:
                raise
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
    id: str = Field(pattern=ID)
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
    for number, row in enumerate(block.children):
        cells = [
            f"<{tag}>{_inline(cell)}</{tag}>"
            for column, cell in enumerate(row.body.cells)
            for tag in (("th" if _is_header(block.body, number, column) else "td"),)
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table>{''.join(rows)}</table>"


def _is_header(table: Body, row: int, column: int) -> bool:
    return (table.has_column_header and row == 0) or (table.has_row_header and column == 0)


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
