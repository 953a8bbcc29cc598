"""Parsing of files into documents, for every format."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import quote

from adapters import html
from adapters.html import declared_encoding, markdown_of, parsed
from adapters.sources.front_matter import Properties, Stated, people_named, properties_of, split_front_matter
from adapters.sources.office_files import pdf_pages, word_html
from adapters.sources.restrictions import Statement, marginal_statements, speaks_of_access, statements_above
from adapters.text_files import decoded
from core.knowledge import clean_text
from core.knowledge.clean_text import clean, columns_as_tables, with_includes_named, without_site, without_struck
from core.knowledge.markdown import BlockKind, blocks
from core.model.errors import MalformedInput

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

MAX_BYTES = 2_000_000  # of a text file; larger ones are data, not documents
MAX_BINARY_BYTES = 30_000_000  # of a PDF file or Word document, which consists mainly of images
LARGE_FILE = b"version https://git-lfs.github.com/spec/"  # the placeholder of a file in Git LFS
PAGES = frozenset({".html", ".htm"})
FOLDER_PAGES = frozenset({"readme", "index", "_index"})  # names of files that stand for their folder
PERMALINKS = " ¶🔗⚓"  # signs at the end of a heading
_META = re.compile(  # also in a page that no parser understands as its author did
    r"<meta\b[^>]{0,200}?\b(?:name|property|itemprop|http-equiv)\s{0,9}=[\"'\s]{0,9}readers?\b", re.IGNORECASE
)
_NAMING = ("property", "itemprop")  # attributes that name what an element states
_WHOLE = frozenset(
    {"html", "body", "main", "article", "section", "div"}
)  # elements whose attributes may be about a page
_MARGINS = frozenset({"header", "footer", "aside"})
_RAW_TABLE = re.compile(
    r"^<(table|dl)\b.*?^</\1>", re.DOTALL | re.MULTILINE
)  # a table that Markdown syntax cannot express


@dataclass(frozen=True, slots=True)
class Part(Properties):
    """A document in a file, with its properties. `page` is its number in a file of pages, from 1."""

    text: str = ""
    page: int | None = None


@cache
def parser() -> bytes:
    """Return a digest of the code that makes documents of files: what another one made of a file is made anew."""
    files = [*Path(__file__).parent.glob("*.py"), Path(html.__file__), Path(clean_text.__file__)]
    return hashlib.blake2b(b"".join(file.read_bytes() for file in sorted(files)), digest_size=8).digest()


def has_format(path: PurePosixPath) -> bool:
    """Return whether a file of this name is a document."""
    return path.suffix.lower() in SUFFIXES


def max_bytes(path: PurePosixPath) -> int:
    return MAX_BINARY_BYTES if path.suffix.lower() in _BINARIES else MAX_BYTES


def published(url: str, path: PurePosixPath) -> str:
    """Return the address of a file below `url`; empty if that is empty."""
    return f"{url.rstrip('/')}/{quote(str(path))}" if url else ""


def web_address(url: str) -> str:
    """Return the address of a page as a link may contain it; empty if it is no address of the web."""
    return quote(url, safe="%/:?#[]@!$&'()*+,;=~") if url.startswith("https://") else ""


@dataclass(frozen=True, slots=True)
class _Content:
    """The statements of a file about itself, its pages, with numbers only in a PDF, and those that cannot be read.

    `title` is its title if it states none.
    """

    stated: Stated
    title: str
    pages: list[tuple[int | None, str]]
    unread: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])


def parse(suffix: str, content: bytes, open_labels: Iterable[str] = ()) -> tuple[list[Part], list[tuple[int, str]]]:
    """Return the documents in a file with this suffix, and the unreadable pages with their reasons.

    A PDF has one document for each page with text, any other file has one. `open_labels` are labels and other values with
    which a file is open. Raises MalformedInput, also for a file that says of itself, in any form, that not everybody may
    read it; and arbitrary errors of libraries for unusual content: call it in an isolated process (`parsing_process`).
    """
    read = _BINARIES[suffix](content) if suffix in _BINARIES else _TEXTS[suffix](_decoded(content, suffix))
    shown = chain.from_iterable(statements_above(text) for _, text in read.pages[:1])
    properties = properties_of(
        replace(read.stated, others=chain(read.stated.others, shown)), {label.lower() for label in open_labels}
    )
    named = replace(properties, title=properties.title or read.title)
    return [_part(named, text, number) for number, text in read.pages], read.unread


def _decoded(content: bytes, suffix: str) -> str:
    """Decode UTF-8, or the encoding declared by a byte-order mark or in the head of an HTML page."""
    if content.startswith(LARGE_FILE):
        raise MalformedInput("The file is only a Git LFS pointer; its content is stored elsewhere.")
    try:
        written = decoded(content, "strict")
    except UnicodeDecodeError as error:
        declared = declared_encoding(content) if suffix in PAGES else ""
        if not declared:
            raise MalformedInput("The file is not UTF-8 text.") from error
        written = content.decode(declared, "replace")
    if "\x00" in written:
        raise MalformedInput("The file is not text, or is UTF-16 without a byte order mark.")
    return written


def _markdown(content: str) -> _Content:
    stated, text = split_front_matter(content)
    text = clean(_RAW_TABLE.sub(lambda table: f"\n\n{markdown_of(parsed(table[0]))}\n\n", text))
    return _Content(stated, _heading_of_all(text), [(None, people_named(stated) + text)])


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


def _html(content: str) -> _Content:
    stated, content = split_front_matter(content)
    soup = parsed(content)
    for picture in soup("svg"):  # it may have its own title element
        picture.decompose()
    title = soup.title.get_text() if soup.title else ""
    own, unread = _stated_in(soup), [("readers", tag) for tag in _META.findall(content)]
    both = Stated((*own.values, *stated.values), chain(unread, own.others, stated.others))
    return _Content(both, title, [(None, without_site(markdown_of(soup)))])


def _stated_in(soup: BeautifulSoup) -> Stated:
    """Return what the `meta` elements of a page say by name, and what its other elements and attributes say."""
    named = [(str(tag["name"]), str(tag.get("content") or "")) for tag in soup("meta") if tag.get("name")]
    others = list[Statement]()
    for tag in soup.find_all(True):
        names = [str(name) for key in _NAMING if (name := tag.get(key)) and speaks_of_access(str(name))]
        others += ((name, str(tag.get("content") or tag.get_text(" "))) for name in names)
        if tag.name in _WHOLE:
            others += (
                (key.removeprefix("data-"), str(value)) for key, value in tag.attrs.items() if key[:5] == "data-"
            )
        elif tag.name in _MARGINS:
            terms = [(term.get_text(), term.find_next_sibling("dd")) for term in tag("dt")]
            others += ((name, value.get_text()) for name, value in terms if value)
            others += marginal_statements(tag.get_text("\n"))
        elif tag.name == "script" and tag.get("type") == "application/ld+json":
            others += statements_above(tag.get_text())
    return Stated(named, others)


def _plain(content: str) -> _Content:
    """Return plain text, with its first line as the title."""
    stated, text = split_front_matter(content)
    title, _, rest = without_struck(text).strip().partition("\n")
    body = columns_as_tables(with_includes_named(rest.strip("\n"))).strip() or title.strip()
    return _Content(stated, title.strip(), [(None, body)])


def _pdf(content: bytes) -> _Content:
    stated, pages, unread = pdf_pages(content)
    return _Content(stated, "", [*pages], unread)


def _word(content: bytes) -> _Content:
    stated, html = word_html(content)
    text = markdown_of(parsed(html))
    return _Content(stated, _heading_of_all(text), [(None, text)])


_TEXTS: dict[str, Callable[[str], _Content]] = {
    ".md": _markdown,
    ".markdown": _markdown,
    ".html": _html,
    ".htm": _html,
    ".txt": _plain,
}
_BINARIES: dict[str, Callable[[bytes], _Content]] = {".pdf": _pdf, ".docx": _word}
SUFFIXES = (*_TEXTS, *_BINARIES)


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
