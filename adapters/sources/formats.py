"""Parsing of files into documents, for every format: PDF files page by page, and Word documents (`.docx`) as HTML.

The format of Word is Office Open XML (ECMA-376, part 1, section 17); a document is a ZIP archive of XML files.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC
from functools import cache
from io import BytesIO
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus
from zipfile import BadZipFile, ZipFile

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]  # it has no types

from adapters import html
from adapters.html import declared_encoding, markdown_of, parsed
from adapters.sources.document_properties import (
    LABEL,
    OFF,
    Properties,
    Stated,
    Statement,
    file_statements,
    leaves,
    marginal_statements,
    people_named,
    properties_of,
    speaks_of_access,
    split_front_matter,
    statements_above,
)
from adapters.text_files import decoded
from core.knowledge import clean_text
from core.knowledge.clean_text import clean, columns_as_tables, with_includes_named, without_site, without_struck
from core.knowledge.markdown import BlockKind, blocks
from core.model.errors import MalformedInput

if TYPE_CHECKING:
    from bs4 import BeautifulSoup
    from pypdf import PdfReader

MAX_PAGES = 2_000  # per file

_WORD = re.compile(r"[^\W\d_]+")
_DIVIDED = re.compile(r"(?<![^\W\d_])([^\W\d_]++)-[ \t]*+\n[ \t]*+([^\W\d_]++)")
_SOFT_HYPHEN = re.compile(r"\u00ad[ \t]*\n?")


def pdf_pages(content: bytes) -> tuple[Stated, list[tuple[int, str]], list[tuple[int, str]]]:
    """Return what the file states about itself, its pages with text, and each unreadable page with the reason.

    A page has its number, from 1. Raises MalformedInput for a file that is damaged, encrypted or longer than MAX_PAGES, or
    of which no page can be read.
    """
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise MalformedInput("The PDF file is encrypted.")
        count, stated = len(reader.pages), _stated_by_pdf(reader)
    except (PyPdfError, *_DAMAGED) as error:
        raise MalformedInput(f"The PDF file cannot be read: {error}.") from error
    if count > MAX_PAGES:
        raise MalformedInput(f"The PDF file has more than {MAX_PAGES} pages.")

    pages, unread = dict[int, str](), list[tuple[int, str]]()
    for number in range(1, count + 1):
        try:
            pages[number] = reader.pages[number - 1].extract_text().strip()
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 — a filter, font or picture that the library does not support
            unread.append((number, f"The page cannot be read: {type(error).__name__}."))
    if unread and not any(pages.values()):
        raise MalformedInput(f"No page of the PDF file can be read. {unread[0][1]}")
    words = {word for text in pages.values() for word in _WORD.findall(text.lower())}
    return stated, [(number, whole_words(text, words)) for number, text in pages.items() if text], unread


def whole_words(text: str, words: Collection[str]) -> str:
    """Return the text with words joined that were hyphenated at the end of a line.

    The hyphen is kept unless the joined word occurs elsewhere in the file: it may be that of `--dry-run`.
    """

    def whole(match: re.Match[str]) -> str:
        together = f"{match[1]}{match[2]}"
        return together if together.lower() in words else f"{match[1]}-{match[2]}"

    return _DIVIDED.sub(whole, _SOFT_HYPHEN.sub("", text))


# The library's errors for invalid objects, besides its own.
_DAMAGED = (ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError, RecursionError, OverflowError)


def _stated_by_pdf(reader: PdfReader) -> Stated:
    """Return the title and the date of a file, and its other properties, which XMP repeats and completes."""
    from pypdf import DocumentInformation

    information = reader.metadata or DocumentInformation()
    properties = [(name.removeprefix("/"), str(value).strip()) for name, value in information.items()]
    packet = reader.root_object.get("/Metadata")
    if packet is not None and (written := packet.get_object().get_data().strip()):
        parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True)
        properties += leaves(etree.fromstring(written, parser))
    try:
        changed = information.modification_date or information.creation_date
    except _DAMAGED:  # a date in an unknown format
        changed = None
    updated = changed.replace(tzinfo=changed.tzinfo or UTC).isoformat() if changed else ""
    return Stated([("title", str(information.title or "").strip()), ("updated", updated)], file_statements(properties))


MAX_XML = 20_000_000  # bytes of one XML file in the archive
DAMAGED = "The Word document is damaged or encrypted."
CODE = "Code"  # the style that text in a typewriter's font gets
STYLES = f"""
p[style-name='Title'] => h1:fresh
p[style-name='{CODE}'] => pre:separator('\\n')
r[style-name='{CODE}'] => code
p[style-name='List Bullet 2'] => ul|ol > li > ul > li:fresh
p[style-name='List Number 2'] => ul|ol > li > ol > li:fresh
"""

_CORE = {"contentStatus": "status", "modified": "updated"}  # names of Office by those of front matter
_UNSEEN = ("strike", "dstrike", "vanish")
_MONOSPACE = re.compile(r"consolas|courier|menlo|monaco|mono\b|source code", re.IGNORECASE)
_CODE_STYLE = re.compile(r"\bcode\b|preformatted|^plain text$", re.IGNORECASE)


def word_html(content: bytes) -> tuple[Stated, str]:
    """Return what a document states about itself, and its text as HTML, without what is struck out, deleted or hidden.

    Raises MalformedInput for a file that is damaged or encrypted.
    """
    import mammoth

    try:
        with ZipFile(BytesIO(content)) as archive:
            files = {name: _tree(archive, name) for name in archive.namelist() if name.endswith((".xml", ".rels"))}
        stated = _stated_by_word(files)
        document = mammoth.convert_to_html(
            _seen(files),
            style_map=STYLES,
            include_embedded_style_map=False,
            transform_document=mammoth.transforms.paragraph(_with_code),
            convert_image=lambda _: [],
            ignore_empty_paragraphs=False,
        )
    except (BadZipFile, zlib.error, EOFError, LookupError, ValueError, RuntimeError, OSError, SyntaxError) as error:
        raise MalformedInput(DAMAGED) from error
    return stated, document.value


def _tree(archive: ZipFile, name: str) -> Any:
    """Return the XML in a file of the archive.

    Raises MalformedInput if it declares entities, as no Word does, and SyntaxError if it is not well-formed, so that no
    property is missed.
    """
    with archive.open(name) as file:
        written = file.read(MAX_XML + 1)
    if len(written) > MAX_XML:
        raise MalformedInput(f"The Word document has more than {MAX_XML} bytes of XML.")
    tree = etree.fromstring(written, etree.XMLParser(resolve_entities=False, no_network=True))
    if tree.getroottree().docinfo.doctype:
        raise MalformedInput(DAMAGED)
    return tree


def _seen(files: Mapping[str, Any]) -> BytesIO:
    """Return the archive with the text removed that is struck out or hidden, also by a style."""
    named = files["word/styles.xml"].iter("{*}style") if "word/styles.xml" in files else ()
    styles = {_value(style, "styleId"): _marks(style) for style in named}
    packed = BytesIO()
    with ZipFile(packed, "w") as archive:
        for name, tree in files.items():
            for run in tree.iter("{*}r"):
                paragraph = next(run.iterancestors("{*}p"), run)
                above = styles.get(_value(paragraph.find("{*}pPr/{*}pStyle")), {})
                marks = above | styles.get(_value(run.find("{*}rPr/{*}rStyle")), {}) | _marks(run)
                for text in run.iter("{*}t") if any(marks.values()) else ():
                    text.text = ""
            archive.writestr(name, etree.tostring(tree))
    return packed


def _value(element: Any, name: str = "val") -> str:
    """Return an attribute, whose namespace depends on the version of the format; empty if there is none."""
    attributes = element.attrib.items() if element is not None else ()
    return next((str(value) for key, value in attributes if key.rpartition("}")[2] == name), "")


def _marks(element: Any) -> dict[str, bool]:
    """Return whether a style or a run is struck out or hidden, as far as it says so itself."""
    marks = ((name, element.find(f"{{*}}rPr/{{*}}{name}")) for name in _UNSEEN)
    return {name: _value(mark) not in OFF for name, mark in marks if mark is not None}


def _stated_by_word(files: Mapping[str, Any]) -> Stated:
    """Return the properties of a document, and what it states in its labels, content controls, headers and footers."""
    places = ("docProps/custom.xml", "docProps/core.xml", "docMetadata/LabelInfo.xml")
    custom, core, labels = (files.get(name, etree.Element("none")) for name in places)
    named = [(_value(each, "name"), "".join(each.itertext()).strip()) for each in custom.iter("{*}property")]
    named += ((_CORE.get(name, name), value) for name, value in leaves(core) if name != "title")
    for label in labels.iter("{*}label"):
        if _value(label, "enabled") not in OFF and _value(label, "removed") in ("", *OFF):
            named.append((f"{LABEL}{_value(label, 'id').strip('{}')}_Enabled", "true"))
    others = [*file_statements(named)]
    for name, tree in files.items():
        for control in tree.iter("{*}sdt"):
            names = (_value(control.find(f"{{*}}sdtPr/{{*}}{key}")) for key in ("alias", "tag"))
            others += ((name, _text(control)) for name in names)
        if name.startswith(("word/header", "word/footer")):
            watermarks = [_value(each, "string") for each in tree.iter("{*}textpath")]
            others += marginal_statements("\n".join((*map(_text, tree.iter("{*}p")), *watermarks)))
    return Stated([(name, value) for name, value in named if value and LABEL not in name], others)


def _text(element: Any) -> str:
    return "".join(text.text or "" for text in element.iter("{*}t"))


def _with_code(paragraph: Any) -> Any:
    """Return a paragraph whose text in a typewriter's font has the style of code; itself, if it is nothing else."""
    from mammoth.documents import Run, Text
    from mammoth.transforms import get_descendants_of_type, run

    def shown(each: Any) -> str:
        return "".join(text.value for text in get_descendants_of_type(each, Text))

    runs = [each for each in get_descendants_of_type(paragraph, Run) if shown(each).strip()]
    if _CODE_STYLE.search(paragraph.style_name or "") or (runs and all(map(_is_code, runs))):
        plain = run(lambda each: each.copy(style_name=None, is_bold=False, is_italic=False))(paragraph)
        return plain.copy(style_name=CODE, numbering=None)
    return run(lambda each: each.copy(style_name=CODE) if _is_code(each) else each)(paragraph)


def _is_code(run: Any) -> bool:
    return bool(_MONOSPACE.search(run.font or ""))


MAX_BYTES = 2_000_000  # of a text file; larger ones are data, not documents
MAX_BINARY_BYTES = 30_000_000  # of a PDF file or Word document, which consists mainly of images
LARGE_FILE = b"version https://git-lfs.github.com/spec/"  # the placeholder of a file in Git LFS
PAGES = frozenset({".html", ".htm"})
STORAGE = ".storage"  # of pages of Confluence, which no file has
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
    return MAX_BINARY_BYTES if path.suffix.lower() in (*_BINARIES, STORAGE) else MAX_BYTES


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


def parse(
    suffix: str, content: bytes, open_labels: Iterable[str] = (), storage: Mapping[str, Any] | None = None
) -> tuple[list[Part], list[tuple[int, str]]]:
    """Return the documents in a file with this suffix, and the unreadable pages with their reasons.

    A PDF has one document for each page with text, any other file has one. `open_labels` are labels and other values with
    which a file is open. Raises MalformedInput, also for a file that says of itself, in any form, that not everybody may
    read it; and arbitrary errors of libraries for unusual content: call it in an isolated process (`parsing_process`).
    """
    if storage is not None:
        read = _storage(content.decode(), **storage)
    else:
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


def _storage(content: str, site: str, space: str, names: Mapping[str, str]) -> _Content:
    """Return a page of Confluence. `site` is the prefix of links, `space` the page's; `names` are user names by id."""
    from adapters.sources.confluence_storage import to_markdown

    def page_link(key: str, title: str) -> str:
        return f"{site}/display/{key or space}/{quote_plus(title)}"

    text = to_markdown(content, page_link, lambda user: names.get(user, "somebody"))
    return _Content(Stated(), "", [(None, text)])


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
