"""Conversion of HTML to Markdown that keeps every identifier unchanged."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import TYPE_CHECKING

from core.knowledge.clean_text import without_line_numbers

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag
    from bs4.element import PageElement
    from markdownify import MarkdownConverter

LANGUAGE = "data-language"  # the attribute of a <pre> with the language of its code
MAX_DEPTH = 100  # depth of nested elements; deeper ones are reduced to their text
MAX_MARKUP = 300_000  # characters of a chat message: ten times as many as of its text
MAX_COLUMNS = 100  # columns of a table; cells are not repeated beyond them
MAX_REPEATED = 2_000  # cells added to a table
MAX_REPEATED_TEXT = 200  # characters of such a cell; a longer one is left empty
LEFT_OUT = ("script", "style", "nav", "footer", "head", "title", "template", "noscript", "svg", "s", "del", "strike")
"""Elements that readers do not see, and struck-out text (the last three)."""
BLOCK_ENDS = frozenset(("p", "div", "li", "tr", "pre", "blockquote"))

_ASCII = bytes(range(0x20, 0x7F))
_FENCE = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)
_BLANKS = re.compile(r"[ \t]{100,}")  # equal to one space for readers; markdownify takes quadratic time for them
_FURNITURE_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "dialog", "alertdialog"})
_FURNITURE = re.compile(
    r"(?<![a-z])(?:bread-?crumbs?|cookie-?\w*|edit-?(?:this-?)?page|page-?(?:feedback|nav(?:igation)?)|feedback|(?:was-this-)?helpful"
    r"|prev-?next|pagination(?:-nav)?|pager|skip-?(?:to-?(?:main-?)?content|link|nav)|header-?link|(?:heading-|header-)?anchor-?link"
    r"|hash-?link|(?:header|heading)-?anchor|permalink|last-?(?:updated|modified)"
    r"|(?:clipboard|copy)-?(?:code-)?(?:btn|button)|(?:btn|button)-?copy)(?![a-z])",
    re.IGNORECASE,
)
_ADVICE = re.compile(r"note|tip|info|important|hint|caution|warning|danger|admonition|callout", re.IGNORECASE)
_GUTTER = re.compile(
    r"(?<![a-z])(?:line-?no(?:s|-\w+)?|linenos?|line-?num(?:ber)?s?|ln|lnt|gutter|gl|blob-num)(?![a-z])"
)
_CODE_CELL = re.compile(r"(?<![a-z])(?:code|blob|highlight|line|lntd)(?![a-z])")
_UNSEEN_STYLE = re.compile(
    r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden|text-decoration(?:-line)?\s*:[^;]*\bline-through)\b",
    re.IGNORECASE,
)
_STRUCK = re.compile(r"(?<![\w-])(?:line-through|struck(?:-?out)?|strike(?:-?through)?)(?![\w-])", re.IGNORECASE)


def cut_markup(html: str) -> str:
    """Return the HTML of a chat message as far as it is read. Its tags may take more room than its text."""
    return html[:MAX_MARKUP]


def parsed(html: str) -> BeautifulSoup:
    """Return the tree of a page or a fragment, in linear time.

    libxml2 parses any text as HTML, and invalid HTML takes no longer.
    """
    # Imported with the first page, so that the bot starts sooner.
    from bs4 import BeautifulSoup

    whole = html.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # libxml2 rejects lone surrogates
    soup = BeautifulSoup(f"{whole}\n ", "lxml")  # a space, because of a text that is one address the library warns
    waiting: list[tuple[Tag, int]] = [(soup, 0)]
    while waiting:
        tag, depth = waiting.pop()
        if depth == MAX_DEPTH:
            tag.string = tag.get_text()
        else:
            waiting += ((child, depth + 1) for child in tag.find_all(recursive=False))
    return soup


def declared_encoding(html: bytes) -> str:
    """Return the encoding that a page declares; empty if there is none, or if it is not ASCII-compatible.

    In such an encoding, the page's statement about its readers would be misread.
    """
    from bs4.dammit import EncodingDetector

    declared = EncodingDetector.find_declared_encoding(html, is_html=True) or ""
    try:
        decoded = _ASCII.decode(declared)
    except (LookupError, ValueError):
        return ""
    return declared if decoded == _ASCII.decode("ascii") else ""


def markdown_of(soup: BeautifulSoup | Tag) -> str:
    """Return the Markdown of a page or fragment. The tree is modified."""
    for tag in soup(lambda tag: _is_unseen(tag) or _is_furniture(tag)):
        tag.decompose()
    for advice in soup("aside"):
        advice.name = "div"
    _straighten_code(soup)
    for table in reversed(soup("table")):  # inner ones first
        _fill_rows(table)
        if any("\n" in code.get_text().strip() for code in table("pre")):
            _unroll(table)
        elif table.find_parent(("td", "th")):
            _make_one_text(table)
    for cell in soup(("td", "th")):
        _make_one_line(cell)
    for text in soup.find_all(string=_BLANKS):
        if not text.find_parent("pre"):
            text.replace_with(_BLANKS.sub(" ", text))
    try:
        text = _converter().convert(str(soup))
    except RecursionError:  # nested deeper than any real page
        text = soup.get_text()
    return text.replace("\xa0", " ").strip()


def element(html: str) -> Tag:
    """Return the element that a piece of HTML consists of."""
    from bs4 import BeautifulSoup, Tag

    made = BeautifulSoup(html, "html.parser").contents[0].extract()
    assert isinstance(made, Tag)
    return made


def put_in_place(tag: Tag, text: str) -> None:
    """Replace the content of a tag with a text.

    The tag stays in the tree, because removing many tags takes quadratic time.
    """
    tag.name, tag.attrs = "span", {}
    tag.string = text


@cache
def _converter() -> MarkdownConverter:
    from markdownify import MarkdownConverter

    class Converter(MarkdownConverter):
        def convert_pre(self, el: Tag, text: str, parent_tags: set[str]) -> str:
            """Enclose code that contains fences in longer ones."""
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


def _is_unseen(tag: Tag) -> bool:
    """Return whether an element is hidden, has no text, or is struck out, by itself, its style or its class."""
    return (
        tag.name in LEFT_OUT
        or str(tag.get("hidden", "until-found")).lower() != "until-found"
        or bool(_UNSEEN_STYLE.search(str(tag.get("style") or "")))
        or bool(_STRUCK.search(_classes(tag)))
    )


def _is_furniture(tag: Tag) -> bool:
    """Return whether an element belongs to the site instead of the page."""
    if tag.name == "a" and "#" in str(tag.get("href")) and not any(map(str.isalnum, tag.get_text())) and not tag.img:
        return True  # a permanent link
    if tag.name == "aside":
        return not _ADVICE.search(f"{_classes(tag)} {tag.get('aria-label')}")
    return (
        str(tag.get("role")).lower() in _FURNITURE_ROLES
        or (tag.name not in ("html", "body", "main", "article") and bool(_FURNITURE.search(_classes(tag))))
        or bool({"prev", "next"}.intersection(tag.get_attribute_list("rel")))
    )


def _classes(tag: Tag) -> str:
    """Return the classes of an element. An id may come from a heading, except that of a question about cookies."""
    own = str(tag.get("id") or "")
    return " ".join([*map(str, tag.get_attribute_list("class")), own if tag.name == "div" and "cookie" in own else ""])


def _straighten_code(soup: BeautifulSoup | Tag) -> None:
    """Reduce each block of code to its lines."""
    for line_end in soup.select("code br"):
        if (code := line_end.find_parent("code")) is not None and not code.find_parent("pre"):
            code.name = "pre"
    for table in soup("table"):
        if _is_code(table):
            table.name = "pre"
    for block in soup("pre"):
        if not block.find_parent("pre"):
            block.string = without_line_numbers(lines_of(block))


def lines_of(tag: Tag) -> str:
    """Return the text of an element, with the lines that a reader sees, and without the numbers of lines of code."""
    from bs4.element import PreformattedString, Tag

    pieces = [""]
    waiting: list[PageElement | str] = [tag]
    while waiting:  # the tree is not modified, because many changes take quadratic time
        each = waiting.pop()
        if not isinstance(each, Tag):
            pieces += [] if isinstance(each, PreformattedString) else [str(each)]  # comments are skipped
        elif each.name == "br":
            pieces.append("\n")
        elif not _is_unseen(each) and not _is_gutter(each):
            waiting += ["\n"] if each.name in BLOCK_ENDS else []
            waiting += reversed(each.contents)
    return "".join(pieces)


def _is_gutter(tag: Tag) -> bool:
    """Return whether an element consists of the numbers of lines of code."""
    is_cell = tag.name == "td" and tag.find_previous_sibling("td") is None and tag.find_next_sibling("td") is not None
    is_named = "data-line-number" in tag.attrs or bool(_GUTTER.search(_classes(tag)))
    return (is_cell or is_named) and all(map(str.isdecimal, tag.get_text().split()))


def _is_code(table: Tag) -> bool:
    """Return whether a table has lines of code, each beside its number."""
    rows = [_cells(row) for row in table("tr")]
    return bool(rows) and all(
        len(row) == 2 and _is_gutter(row[0]) and (_CODE_CELL.search(_classes(row[1])) or _is_only_code(row[1]))
        for row in rows
    )


def _is_only_code(cell: Tag) -> bool:
    code = cell.pre or cell.code
    return code is not None and code.get_text().strip() == cell.get_text().strip()


def _unroll(table: Tag) -> None:
    """Convert a table to one text per cell below the name of its column, because Markdown has no code in tables."""
    rows = [row for row in table("tr") if row.find_parent("table") is table]
    names = [" ".join(cell.get_text().split()) for cell in _cells(rows[0])] if rows and not rows[0].td else []
    for row in rows:
        for number, cell in enumerate(_cells(row)):
            cell.name = "div"
            if row is not rows[0] and number < len(names) and names[number] and cell.get_text().strip():
                cell.insert(0, element(f"<p><strong>{escape(names[number])}:</strong></p>"))
        row.name = "div"
    if names:
        put_in_place(rows[0], "")
    for part in (table, *table(("thead", "tbody", "tfoot", "caption", "colgroup"))):
        part.name = "div"


def _fill_rows(table: Tag) -> None:
    """Repeat cells that span several rows, because Markdown has no row spans.

    If the first column has headers and the first row has none, an empty header is added, because Markdown would use the
    first row as header.
    """
    rows = [row for row in table("tr") if row.find_parent("table") is table]
    first = [cell.name for cell in _cells(rows[0])] if rows else []
    if first[:1] == ["th"] and "td" in first:
        rows[0].insert_before(element(f"<tr>{'<th></th>' * len(first)}</tr>"))
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
            repeated = element(f'<td colspan="{width}">{escape(text)}</td>')
            if cells:
                cells[0].insert_before(repeated)
            else:
                row.append(repeated)
            if above and above.last_row == number:
                del reaching[column]
            column += width


@dataclass(frozen=True, slots=True)
class _Reaching:
    """A cell that spans into further rows: its text and the number of columns."""

    text: str
    last_row: int
    width: int


def _cells(row: Tag) -> list[Tag]:
    return row.find_all(("td", "th"), recursive=False)


def _width(cell: Tag) -> int:
    return _span(cell, "colspan", MAX_COLUMNS) or 1


def _span(cell: Tag, attribute: str, most: int) -> int:
    """Return how far a cell spans; 0 means to the end."""
    given = str(cell.get(attribute) or "1")
    return min(int(given[:6]) or most, most) if given.isdecimal() else 1


def _make_one_text(table: Tag) -> None:
    """Convert a nested table to text: rows separated by semicolons, cells by commas."""
    rows = ([" ".join(cell.get_text(" ").split()) for cell in _cells(row)] for row in table("tr"))
    table.string = "; ".join(line for row in rows if (line := ", ".join(filter(None, row))))
    table.name = "span"


def _make_one_line(cell: Tag) -> None:
    """Convert a cell to one line, as Markdown requires: code becomes inline, and bars are escaped."""
    for block in cell("pre"):
        block.name = "code"
        block.string = " ".join(block.get_text().split())
    for text in cell.find_all(string=True):
        if "|" in text:
            text.replace_with(text.replace("|", r"\|"))
