"""What stands in a file, whatever its format."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from urllib.parse import quote

from adapters.html import declared_encoding, markdown_of, parsed
from adapters.sources.front_matter import Properties, properties_from, split_front_matter
from adapters.sources.pdf import pdf_pages
from core.conversation import PUBLIC
from core.errors import MalformedInput
from core.knowledge.document import Document
from core.knowledge.markdown import BlockKind, blocks

MAX_BYTES = 2_000_000  # of one file of text; a larger one is data, not a document
MAX_PDF_BYTES = 30_000_000  # of one PDF file, most of which are pictures
LARGE_FILE = b"version https://git-lfs.github.com/spec/"  # what stands in place of a file that Git LFS keeps
PAGES = frozenset({".html", ".htm"})
FOLDER_PAGES = frozenset({"readme", "index", "_index"})  # names of files that stand for their folder


@dataclass(frozen=True, slots=True)
class Origin:
    """What is known of a file apart from its content. `path` is relative to the source, `url` where it is published.

    `readers` may read it unless it says itself by whom it may be read.
    """

    source: str
    path: PurePosixPath
    url: str = ""
    readers: frozenset[str] = frozenset({PUBLIC})


def has_format(path: PurePosixPath) -> bool:
    """Whether a file of this name is a document."""
    return path.suffix.lower() in SUFFIXES


def max_bytes(path: PurePosixPath) -> int:
    return MAX_PDF_BYTES if path.suffix.lower() == ".pdf" else MAX_BYTES


def published(url: str, path: PurePosixPath) -> str:
    """The address of a file of what is published at `url`; empty if it is published nowhere."""
    return f"{url.rstrip('/')}/{quote(str(path))}" if url else ""


def documents_of(origin: Origin, content: bytes) -> Iterator[Document]:
    """The document in a file; of a PDF, one for each page that has text. Raises MalformedInput.

    The family is the first folder on the path, or the source's name for a file at the top.
    """
    if len(content) > max_bytes(origin.path):
        raise MalformedInput(f"The file is larger than {max_bytes(origin.path)} bytes.")
    if (suffix := origin.path.suffix.lower()) == ".pdf":
        yield from _pdf(origin, content)
        return
    if content.startswith(LARGE_FILE):
        raise MalformedInput("The file itself is kept elsewhere, by Git LFS.")
    properties, body = _TEXTS[suffix](_decoded(content, suffix))
    yield _document(origin, properties, body)


def _decoded(content: bytes, suffix: str) -> str:
    """UTF-8, or what the file says of itself: by its first two bytes or, if it is a page of HTML, in its head."""
    encoding = "utf-16" if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        if suffix in PAGES and (declared := declared_encoding(content)):
            return content.decode(declared, "replace")
        raise MalformedInput("The file is not UTF-8 text.") from error


def parse_markdown(content: str) -> tuple[Properties, str]:
    """Front matter, or else the heading of the whole as the title, and the text below. Raises MalformedInput."""
    properties, text = split_front_matter(content)
    return replace(properties, title=properties.title or _heading_of_all(text)), text.strip()


def _heading_of_all(text: str) -> str:
    """Empty where the first heading is that of a section: one of several, or one that comes after other text."""
    read = blocks(text)
    headings = [block for block in read if block.kind is BlockKind.HEADING]
    if not headings:
        return ""
    first, *others = headings
    stands_above = first is read[0] and all(other.level > first.level for other in others)
    return first.heading if first.level == 1 or stands_above else ""


def title_from(path: PurePosixPath) -> str:
    """The name of the file, or that of its folder where the file stands for it."""
    return path.parent.name if path.stem.lower() in FOLDER_PAGES and path.parent.name else path.stem


def _html(content: str) -> tuple[Properties, str]:
    soup = parsed(content)
    for picture in soup("svg"):  # has a title of its own
        picture.decompose()
    metadata = {str(tag.get("name")): str(tag.get("content") or "") for tag in soup.find_all("meta") if tag.get("name")}
    title = soup.title.get_text() if soup.title else ""
    return properties_from(metadata | {"title": title}), markdown_of(soup)


def _plain(content: str) -> tuple[Properties, str]:
    """The first line is the title."""
    properties, text = split_front_matter(content)
    title, _, rest = text.strip().partition("\n")
    return replace(properties, title=properties.title or title.strip()), rest.strip() or title.strip()


_TEXTS: dict[str, Callable[[str], tuple[Properties, str]]] = {
    ".md": parse_markdown,
    ".markdown": parse_markdown,
    ".html": _html,
    ".htm": _html,
    ".txt": _plain,
}
SUFFIXES = (*_TEXTS, ".pdf")


def _pdf(origin: Origin, content: bytes) -> Iterator[Document]:
    properties, pages = pdf_pages(content)
    title = properties.title or origin.path.stem
    for number, text in pages:
        anchor = f"#page={number}"
        page = _document(origin, replace(properties, title=f"{title}, page {number}"), text)
        yield replace(page, id=f"{page.id}{anchor}", url=f"{page.url}{anchor}" if page.url else "")


def _document(origin: Origin, properties: Properties, text: str) -> Document:
    parts = origin.path.parts
    return Document(
        id=f"{origin.source}/{origin.path}",
        source=origin.source,
        family=parts[0] if len(parts) > 1 else origin.source,
        title=properties.title or title_from(origin.path),
        text=text,
        url=origin.url,
        owner=properties.owner,
        updated_at=properties.updated_at,
        readers=origin.readers if properties.readers is None else properties.readers,
    )
