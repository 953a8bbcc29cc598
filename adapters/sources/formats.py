"""Parsing of files into documents, for every format."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath
from urllib.parse import quote

from adapters.html import declared_encoding, markdown_of, parsed
from adapters.sources.front_matter import (
    Properties,
    properties_from,
    refuse_misunderstood_meta,
    split_front_matter,
)
from adapters.sources.pdf import pdf_pages
from adapters.sources.restrictions import refuse_restriction, refuse_restrictions_above
from adapters.sources.word import word_html
from adapters.text_files import decoded
from core.knowledge.clean_text import clean, columns_as_tables, with_includes_named, without_site
from core.knowledge.markdown import BlockKind, blocks
from core.model.errors import MalformedInput

MAX_BYTES = 2_000_000  # of a text file; larger ones are data, not documents
MAX_BINARY_BYTES = 30_000_000  # of a PDF file or Word document, which consists mainly of images
LARGE_FILE = b"version https://git-lfs.github.com/spec/"  # the placeholder of a file in Git LFS
PAGES = frozenset({".html", ".htm"})
FOLDER_PAGES = frozenset({"readme", "index", "_index"})  # names of files that stand for their folder
PERMALINKS = " ¶🔗⚓"  # signs at the end of a heading
_RAW_TABLE = re.compile(
    r"^<table\b.*?^</table>", re.DOTALL | re.MULTILINE
)  # a table that Markdown syntax cannot express


@dataclass(frozen=True, slots=True)
class Part:
    """A document in a file. `page` is its number in a file of pages, from 1."""

    title: str
    text: str
    owner: str = ""
    updated_at: datetime | None = None
    readers: frozenset[str] | None = None  # None if the file does not name readers
    page: int | None = None
    note: str = ""  # see `Properties`


def has_format(path: PurePosixPath) -> bool:
    """Return whether a file of this name is a document."""
    return path.suffix.lower() in SUFFIXES


def max_bytes(path: PurePosixPath) -> int:
    return MAX_BINARY_BYTES if path.suffix.lower() in (".pdf", ".docx") else MAX_BYTES


def published(url: str, path: PurePosixPath) -> str:
    """Return the address of a file below `url`; empty if that is empty."""
    return f"{url.rstrip('/')}/{quote(str(path))}" if url else ""


def web_address(url: str) -> str:
    """Return the address of a page as a link may contain it; empty if it is no address of the web."""
    return quote(url, safe="%/:?#[]@!$&'()*+,;=~") if url.startswith("https://") else ""


def parse(suffix: str, content: bytes) -> tuple[list[Part], list[tuple[int, str]]]:
    """Return the documents in a file with this suffix, and the unreadable pages with their reasons.

    A PDF has one document for each page with text, any other file has one. Raises MalformedInput, and arbitrary errors
    of libraries for unusual content: call it in an isolated process (`parsing_process`).
    """
    if suffix == ".pdf":
        return _pdf(content)
    if suffix == ".docx":
        return [_word(content)], []
    if content.startswith(LARGE_FILE):
        raise MalformedInput("The file is only a Git LFS pointer; its content is stored elsewhere.")
    written = _decoded(content, suffix)
    if "\x00" in written:
        raise MalformedInput("The file is not text, or is UTF-16 without a byte order mark.")
    properties, text = _TEXTS[suffix](written)
    return [_part(properties, text)], []


def _decoded(content: bytes, suffix: str) -> str:
    """Decode UTF-8, or the encoding declared by a byte-order mark or in the head of an HTML page."""
    try:
        return decoded(content, "strict")
    except UnicodeDecodeError as error:
        if suffix in PAGES and (declared := declared_encoding(content)):
            return content.decode(declared, "replace")
        raise MalformedInput("The file is not UTF-8 text.") from error


def parse_markdown(content: str) -> tuple[Properties, str]:
    """Return the front matter, or else the main heading as the title, and the text below. Raises MalformedInput."""
    properties, text = split_front_matter(content)
    text = clean(_RAW_TABLE.sub(lambda table: f"\n\n{markdown_of(parsed(table[0]))}\n\n", text))
    return replace(properties, title=properties.title or _heading_of_all(text)), text


def _heading_of_all(text: str) -> str:
    """Return the main heading; empty if the first heading is one of several, or follows other text."""
    read = blocks(text)
    headings = [block for block in read if block.kind is BlockKind.HEADING]
    if not headings:
        return ""
    first, *others = headings
    stands_above = first is read[0] and all(other.level > first.level for other in others)
    return first.heading if first.level == 1 or stands_above else ""


def title_from(path: PurePosixPath) -> str:
    """Return the name of the file, or of its folder if the file stands for it."""
    return path.parent.name if path.stem.lower() in FOLDER_PAGES and path.parent.name else path.stem


def _html(content: str) -> tuple[Properties, str]:
    stated, content = split_front_matter(content)
    soup = parsed(content)
    for picture in soup("svg"):  # it may have its own title element
        picture.decompose()
    named = [(str(tag.get("name")), str(tag.get("content") or "")) for tag in soup.find_all("meta") if tag.get("name")]
    if sum(name.strip().lower() == "readers" for name, _ in named) + (stated.readers is not None) > 1:
        raise MalformedInput("The page names its readers twice.")
    title = soup.title.get_text() if soup.title else ""
    properties = properties_from(dict(named) | {"title": title})
    if properties.readers is None and stated.readers is None:
        for tag in soup.find_all("meta"):
            for attribute in ("name", "property", "itemprop"):
                refuse_restriction(str(tag.get(attribute) or ""), str(tag.get("content") or ""))
        refuse_misunderstood_meta(content)
    return (
        Properties(
            properties.title or stated.title,
            properties.owner or stated.owner,
            properties.updated_at or stated.updated_at,
            properties.readers if stated.readers is None else stated.readers,
            properties.note or stated.note,
        ),
        without_site(markdown_of(soup)),
    )


def _plain(content: str) -> tuple[Properties, str]:
    """Return plain text, with its first line as the title."""
    properties, text = split_front_matter(content)
    title, _, rest = text.strip().partition("\n")
    body = columns_as_tables(with_includes_named(rest.strip("\n"))).strip() or title.strip()
    return replace(properties, title=properties.title or title.strip()), body


_TEXTS: dict[str, Callable[[str], tuple[Properties, str]]] = {
    ".md": parse_markdown,
    ".markdown": parse_markdown,
    ".html": _html,
    ".htm": _html,
    ".txt": _plain,
}
SUFFIXES = (*_TEXTS, ".pdf", ".docx")


def _pdf(content: bytes) -> tuple[list[Part], list[tuple[int, str]]]:
    properties, pages, unread = pdf_pages(content)
    parts = [_part(properties, text, number) for number, text in pages]
    if parts:
        refuse_restrictions_above(parts[0].text)
    return parts, unread


def _word(content: bytes) -> Part:
    properties, html = word_html(content)
    text = markdown_of(parsed(html))
    refuse_restrictions_above(text)
    return _part(replace(properties, title=properties.title or _heading_of_all(text)), text)


def _part(properties: Properties, text: str, page: int | None = None) -> Part:
    return Part(
        title=storable(properties.title.rstrip(PERMALINKS)),
        text=storable(text),
        owner=storable(properties.owner),
        updated_at=properties.updated_at,
        readers=properties.readers,
        page=page,
        note=storable(properties.note),
    )


def storable(text: str) -> str:
    """Return a text without lone surrogates and NUL, which databases and chats reject."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
