"""Conversion of Word documents (`.docx`) to HTML: headings, lists, tables, code, links and styles.

The format is Office Open XML (ECMA-376, part 1, section 17); a document is a ZIP archive of XML files.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from itertools import groupby
from typing import TYPE_CHECKING
from xml.parsers import expat
from zipfile import BadZipFile, ZipFile

from adapters.html import MAX_REPEATED_TEXT
from adapters.sources.front_matter import Properties, properties_from
from core.model.errors import MalformedInput

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

DAMAGED = "The Word document is damaged or encrypted."
MAX_XML = 20_000_000  # bytes of one XML file in the archive
MAX_LEVEL = 8  # of nested list items
MAX_SPAN = 100  # columns of a cell
UNNUMBERED = ("bullet", "none", "")  # formats of the signs before the items of a list

_MONOSPACE = re.compile(r"consolas|courier|menlo|monaco|mono\b|source code", re.IGNORECASE)
_CODE_STYLE = re.compile(r"\bcode\b|preformatted|^plain text$", re.IGNORECASE)
_HEADING = re.compile(r"heading ([1-6])", re.IGNORECASE)
_LIST_STYLE = re.compile(r"list (bullet|number)(?: ([2-5]))?", re.IGNORECASE)
_SAFE = ("https://", "http://", "mailto:")


def word_html(content: bytes) -> tuple[Properties, str]:
    """Return the properties and the text of a document as HTML.

    Raises MalformedInput for a file that is damaged or encrypted, or whose properties speak of access and are not
    understood, such as the sensitivity labels of Microsoft Purview.
    """
    try:
        with ZipFile(BytesIO(content)) as archive:
            body = _xml(archive, "word/document.xml").find("w:body")
            if body is None:
                raise MalformedInput("The file is no Word document.")
            document = _Document(
                _styles(_xml(archive, "word/styles.xml")),
                _ordered_levels(_xml(archive, "word/numbering.xml")),
                _targets(_xml(archive, "word/_rels/document.xml.rels")),
            )
            stated = _stated(_xml(archive, "docProps/custom.xml"), _xml(archive, "docProps/core.xml"))
            return properties_from(stated), document.html(body)
    except (BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        raise MalformedInput(DAMAGED) from error


def _xml(archive: ZipFile, name: str) -> BeautifulSoup:
    """Return the tree of a file in the archive; an empty one if there is none.

    Raises MalformedInput if it is not well-formed, so that no property is missed, or declares entities, as no Word does.
    """
    from bs4 import BeautifulSoup

    if name not in archive.namelist():
        return BeautifulSoup("", "xml")
    with archive.open(name) as file:
        written = file.read(MAX_XML + 1)
    if len(written) > MAX_XML:
        raise MalformedInput(f"The Word document has more than {MAX_XML} bytes of XML.")
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = _refuse
    try:
        parser.Parse(written, True)
    except expat.ExpatError as error:
        raise MalformedInput(DAMAGED) from error
    return BeautifulSoup(written, "xml")


def _refuse(*_: object) -> None:
    raise MalformedInput(DAMAGED)


def _styles(xml: BeautifulSoup) -> dict[str, str]:
    """Return the name of each style by id. Ids are translated, names of built-in styles are not."""
    return {_value(style, "w:styleId"): _value(style.find("w:name")) for style in xml("w:style")}


def _ordered_levels(xml: BeautifulSoup) -> frozenset[tuple[str, str]]:
    """Return the lists and levels that are numbered."""
    levels = {
        _value(kind, "w:abstractNumId"): [
            _value(level, "w:ilvl") for level in kind("w:lvl") if _value(level.find("w:numFmt")) not in UNNUMBERED
        ]
        for kind in xml("w:abstractNum")
    }
    kinds = {_value(number, "w:numId"): _value(number.find("w:abstractNumId")) for number in xml("w:num")}
    return frozenset((number, level) for number, kind in kinds.items() for level in levels.get(kind, ()))


def _targets(xml: BeautifulSoup) -> dict[str, str]:
    return {str(each.get("Id")): str(each.get("Target") or "") for each in xml("Relationship")}


def _stated(custom: BeautifulSoup, core: BeautifulSoup) -> dict[str, str]:
    """Return the document's own properties, by name: those that people add, its status, its category and its date."""
    stated = {str(each.get("name") or ""): each.get_text().strip() for each in custom("property")}
    for tag, name in (("cp:contentStatus", "status"), ("cp:category", "category"), ("dcterms:modified", "updated")):
        if (element := core.find(tag)) and (text := element.get_text().strip()):
            stated.setdefault(name, text)
    return {name: value for name, value in stated.items() if value}


@dataclass(frozen=True, slots=True)
class _Paragraph:
    """A paragraph: the tag of its block, its content, and for an item of a list its level and kind."""

    tag: str
    content: str
    level: int = -1
    kind: str = ""


@dataclass(frozen=True, slots=True)
class _Document:
    """A document, by what its paragraphs refer to: names of styles, numbered lists and targets of links."""

    styles: Mapping[str, str]
    ordered: frozenset[tuple[str, str]]
    targets: Mapping[str, str]

    def html(self, body: Tag) -> str:
        parts = list[str]()
        for kind, group in groupby(self._blocks(body), key=_kind):
            blocks = list(group)
            if kind == "pre":
                lines = "\n".join(block.content for block in blocks)
                parts.append(f"<pre>{lines}</pre>")
            elif kind == "li":
                parts.append(_list(blocks))
            else:
                parts += (f"<{block.tag}>{block.content}</{block.tag}>" for block in blocks)
        return "".join(parts)

    def _blocks(self, parent: Tag) -> Iterator[_Paragraph]:
        for child in parent.find_all(recursive=False):
            if child.name == "p":
                yield self._paragraph(child)
            elif child.name == "tbl":
                yield _Paragraph("table", self._rows(child))
            elif child.name in ("sdt", "sdtContent", "ins", "customXml", "smartTag"):
                yield from self._blocks(child)

    def _paragraph(self, paragraph: Tag) -> _Paragraph:
        properties = paragraph.find("w:pPr", recursive=False)
        style = self.styles.get(_value(_child(properties, "w:pStyle")), "")
        runs = list(self._runs(paragraph))
        if runs and (_CODE_STYLE.search(style) or all(run.is_code for run in runs if run.text.strip())):
            text = "".join(run.text for run in runs)
            if text.strip() or _CODE_STYLE.search(style):
                return _Paragraph("pre", escape(text))
        content = "".join(run.html for run in runs)
        if heading := _HEADING.fullmatch(style):
            return _Paragraph(f"h{heading[1]}", content)
        if style.lower() == "title":
            return _Paragraph("h1", content)
        number = _child(properties, "w:numPr")
        list_id, level = _value(_child(number, "w:numId")), _value(_child(number, "w:ilvl")) or "0"
        if list_id not in ("", "0"):
            kind = "ol" if (list_id, level) in self.ordered else "ul"
            return _Paragraph("li", content, min(int(level), MAX_LEVEL) if level.isdecimal() else 0, kind)
        if styled := _LIST_STYLE.fullmatch(style):
            return _Paragraph("li", content, int(styled[2] or 1) - 1, "ol" if styled[1].lower() == "number" else "ul")
        return _Paragraph("p", content)

    def _runs(self, parent: Tag, target: str = "") -> Iterator[_Run]:
        for child in parent.find_all(recursive=False):
            if child.name == "r":
                yield _run(child, target)
            elif child.name == "hyperlink":
                yield from self._runs(child, self.targets.get(_value(child, "r:id"), ""))
            elif child.name in ("ins", "moveTo", "smartTag", "sdt", "sdtContent", "fldSimple"):
                yield from self._runs(child, target)

    def _rows(self, table: Tag) -> str:
        """Return the rows. A cell that continues the one above it repeats its text."""
        rows, above = list[str](), dict[int, str]()
        for row in table.find_all("w:tr", recursive=False):
            column, cells = 0, list[str]()
            for cell in row.find_all("w:tc", recursive=False):
                properties = cell.find("w:tcPr", recursive=False)
                merge, width = _child(properties, "w:vMerge"), _value(_child(properties, "w:gridSpan"))
                span = min(int(width), MAX_SPAN) if width.isdecimal() else 1
                continues = merge is not None and _value(merge) != "restart"
                content = above.get(column, "") if continues else self.html(cell)
                above[column] = content if len(content) <= MAX_REPEATED_TEXT else ""
                cells.append(f'<td colspan="{span}">{content}</td>')
                column += span
            rows.append(f"<tr>{''.join(cells)}</tr>")
        return "".join(rows)


@dataclass(frozen=True, slots=True)
class _Run:
    """A text in one style."""

    text: str
    tags: tuple[str, ...]
    target: str

    @property
    def is_code(self) -> bool:
        return "code" in self.tags

    @property
    def html(self) -> str:
        html = escape(self.text).replace("\n", "<br/>")
        if not self.text.strip():
            return html
        for tag in self.tags:
            html = f"<{tag}>{html}</{tag}>"
        return f'<a href="{escape(self.target)}">{html}</a>' if self.target.startswith(_SAFE) else html


def _run(run: Tag, target: str) -> _Run:
    signs = {"t": None, "tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
    children = [child for child in run.find_all(recursive=False) if child.name in signs]
    text = "".join(child.get_text() if (sign := signs[child.name]) is None else sign for child in children)
    properties = run.find("w:rPr", recursive=False)
    fonts = _child(properties, "w:rFonts")
    is_code = bool(_MONOSPACE.search(_value(fonts, "w:ascii") or _value(fonts, "w:hAnsi")))
    styles = {"code": is_code, "strong": _is_on(properties, "w:b"), "em": _is_on(properties, "w:i")}
    struck = _is_on(properties, "w:strike") or _is_on(properties, "w:dstrike")
    return _Run(text, tuple(tag for tag, applies in (styles | {"s": struck}).items() if applies), target)


def _is_on(properties: Tag | None, name: str) -> bool:
    switch = _child(properties, name)
    return switch is not None and _value(switch) not in ("0", "false", "off", "none")


def _child(tag: Tag | None, name: str) -> Tag | None:
    return tag.find(name, recursive=False) if tag is not None else None


def _value(tag: Tag | None, attribute: str = "w:val") -> str:
    return str(tag.get(attribute) or "") if tag is not None else ""


def _kind(block: _Paragraph) -> str:
    return block.tag if block.tag in ("li", "pre") else ""


def _list(items: Sequence[_Paragraph]) -> str:
    """Return the HTML of items that follow each other, nested by their levels."""
    parts, waiting = list[str](), list[tuple[int, str]]()  # the lists that are open, by level and tag
    for item in items:
        while waiting and (
            waiting[-1][0] > item.level or (waiting[-1][0] == item.level and waiting[-1][1] != item.kind)
        ):
            parts.append(f"</li></{waiting.pop()[1]}>")
        if waiting and waiting[-1][0] == item.level:
            parts.append("</li>")
        else:
            parts.append(f"<{item.kind}>")
            waiting.append((item.level, item.kind))
        parts.append(f"<li>{item.content}")
    parts += (f"</li></{tag}>" for _, tag in reversed(waiting))
    return "".join(parts)
