"""Text of PDF files, page by page, and of Word documents (`.docx`) as HTML: headings, lists, tables, code, links and notes.

The format is Office Open XML (ECMA-376, part 1, section 17); a document is a ZIP archive of XML files.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Mapping
from datetime import UTC
from io import BytesIO
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]  # it has no types

from adapters.sources.front_matter import Stated
from adapters.sources.restrictions import LABEL, OFF, file_statements, leaves, marginal_statements
from core.model.errors import MalformedInput

if TYPE_CHECKING:
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
