"""HTML → Markdown that keeps every identifier as it is."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag
    from markdownify import MarkdownConverter

LANGUAGE = "data-language"  # the attribute of a <pre> that names the language of its code
MAX_DEPTH = 100  # of elements within each other; what is deeper keeps its text alone
MAX_COLUMNS = 100  # of a table; what reaches over further ones is not repeated
MAX_REPEATED = 2_000  # cells that are added to a table
MAX_REPEATED_TEXT = 200  # characters of such a cell; one with more is left empty
LEFT_OUT = ("script", "style", "nav", "head", "title", "template", "noscript", "svg", "s", "del", "strike")
"""What no reader sees, and what is struck out (the last three)."""

_ASCII = bytes(range(0x20, 0x7F))
_FENCE = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)
_BLANKS = re.compile(r"[ \t]{100,}")  # one blank to a reader; markdownify takes quadratic time for them
_HIDING = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE)


def parsed(html: str) -> BeautifulSoup:
    """Return the tree of a page or a part of it, in time that grows with its length.

    libxml2 reads any text as HTML: what is wrong in it costs no more than what is right.
    """
    # Loaded with the first page: a bot is sooner ready without.
    from bs4 import BeautifulSoup

    whole = html.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # libxml2 takes no half characters
    soup = BeautifulSoup(whole, "lxml")
    waiting: list[tuple[Tag, int]] = [(soup, 0)]
    while waiting:
        tag, depth = waiting.pop()
        if depth == MAX_DEPTH:
            tag.string = tag.get_text()
        else:
            waiting += ((child, depth + 1) for child in tag.find_all(recursive=False))
    return soup


def declared_encoding(html: bytes) -> str:
    """Return the encoding that a page says it is in; empty if it says none, or one in which ASCII means something else.

    In such an encoding, what the page says about its readers would be misread.
    """
    from bs4.dammit import EncodingDetector

    declared = EncodingDetector.find_declared_encoding(html, is_html=True) or ""
    try:
        decoded = _ASCII.decode(declared)
    except (LookupError, ValueError):
        return ""
    return declared if decoded == _ASCII.decode("ascii") else ""


def markdown_of(soup: BeautifulSoup | Tag) -> str:
    """The text of a page or a part of it. The tree is changed."""
    for tag in soup(_is_left_out):
        tag.decompose()
    for table in reversed(soup("table")):  # inner ones first
        _fill_rows(table)
        if table.find_parent(("td", "th")):
            _make_one_text(table)
    for cell in soup(("td", "th")):
        _make_one_line(cell)
    for text in soup.find_all(string=_BLANKS):
        if not text.find_parent("pre"):
            text.replace_with(_BLANKS.sub(" ", text))
    for line_end in soup.select("pre br"):
        put_in_place(line_end, "\n")
    try:
        text = _converter().convert(str(soup))
    except RecursionError:  # tags within tags, deeper than anybody writes
        text = soup.get_text()
    return text.replace("\xa0", " ").strip()


def put_in_place(tag: Tag, text: str) -> None:
    """Make a tag say a text and nothing else.

    It stays in the tree: to take it out, its place among the others would be looked for, in quadratic time for many.
    """
    tag.name, tag.attrs = "span", {}
    tag.string = text


@cache
def _converter() -> MarkdownConverter:
    from markdownify import MarkdownConverter

    class Converter(MarkdownConverter):
        def convert_pre(self, el: Tag, text: str, parent_tags: set[str]) -> str:
            """Code that holds fences stands between longer ones, or it would end with the first of its own."""
            fence = "`" * max(3, *(len(own) + 1 for own in _FENCE.findall(text)), 0)
            code = text.strip("\n")
            return f"\n\n{fence}{el.get(LANGUAGE) or ''}\n{code}\n{fence}\n\n" if code else ""

    return Converter(
        bs4_options="lxml",
        heading_style="ATX",
        bullets="-",
        escape_misc=False,
        escape_underscores=False,
        escape_asterisks=False,
        table_infer_header=True,
    )


def _is_left_out(tag: Tag) -> bool:
    hides_itself = str(tag.get("hidden", "until-found")).lower() != "until-found"
    return tag.name in LEFT_OUT or hides_itself or bool(_HIDING.search(str(tag.get("style") or "")))


def _fill_rows(table: Tag) -> None:
    """Every cell stands below the one that names it, where Markdown has no cells that reach over several rows.

    Such a cell is repeated in each of them. Where the rows are named by their first cell and the columns by none, an
    empty header says so: the first row would be taken for one.
    """
    rows = [row for row in table("tr") if row.find_parent("table") is table]
    if rows and _names_itself(rows[0]):
        rows[0].insert_before(_row(len(_cells(rows[0]))))
    reaching: dict[int, _Reaching] = {}
    room = MAX_REPEATED
    for number, row in enumerate(rows):
        column, cells = 0, deque(_cells(row))
        while room and (cells or column <= max(reaching, default=-1)):
            if (above := reaching.get(column)) is None and cells:
                cell = cells.popleft()
                if column < MAX_COLUMNS and (last := number + _span(cell, "rowspan", len(rows) - number) - 1) > number:
                    text = " ".join(cell.get_text(" ").split())
                    reaching[column] = _Reaching(text if len(text) <= MAX_REPEATED_TEXT else "", last, _width(cell))
                column += _width(cell)
                continue
            room -= 1
            text, width = (above.text, above.width) if above else ("", 1)
            repeated = _cell(text, width)
            if cells:
                cells[0].insert_before(repeated)
            else:
                row.append(repeated)
            if above and above.last_row == number:
                del reaching[column]
            column += width


@dataclass(frozen=True, slots=True)
class _Reaching:
    """A cell that reaches down to a row: its text, and over how many columns."""

    text: str
    last_row: int
    width: int


def _names_itself(row: Tag) -> bool:
    kinds = [cell.name for cell in _cells(row)]
    return kinds[:1] == ["th"] and "td" in kinds


def _cells(row: Tag) -> list[Tag]:
    return row.find_all(("td", "th"), recursive=False)


def _width(cell: Tag) -> int:
    return _span(cell, "colspan", MAX_COLUMNS) or 1


def _span(cell: Tag, attribute: str, most: int) -> int:
    """How far a cell reaches; 0 is as far as there is anything."""
    given = str(cell.get(attribute) or "1")
    return min(int(given[:6]) or most, most) if given.isdecimal() else 1


def _row(cells: int) -> Tag:
    from bs4 import Tag

    row = Tag(name="tr")
    for _ in range(cells):
        row.append(Tag(name="th"))
    return row


def _cell(text: str, width: int) -> Tag:
    from bs4 import Tag

    cell = Tag(name="td", attrs={"colspan": str(width)})
    cell.string = text
    return cell


def _make_one_text(table: Tag) -> None:
    """A table within a cell: its rows parted by semicolons, its cells by commas."""
    rows = ([" ".join(cell.get_text(" ").split()) for cell in _cells(row)] for row in table("tr"))
    table.string = "; ".join(line for row in rows if (line := ", ".join(filter(None, row))))
    table.name = "span"


def _make_one_line(cell: Tag) -> None:
    """A row of a Markdown table is one line: its code is inline, and a stroke in it parts no cells."""
    for block in cell("pre"):
        block.name = "code"
        block.string = " ".join(block.get_text().split())
    for text in cell.find_all(string=True):
        if "|" in text:
            text.replace_with(text.replace("|", r"\|"))
