"""HTML → Markdown that keeps every identifier as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

LANGUAGE = "data-language"  # the attribute of a <pre> that names the language of its code
LEFT_OUT = ("script", "style", "nav", "head", "title")


def parsed(html: str) -> BeautifulSoup:
    # Loaded with the first page: a bot is sooner ready without.
    from bs4 import BeautifulSoup

    return BeautifulSoup(html, "html.parser")


def markdown_of(soup: BeautifulSoup | Tag) -> str:
    """The text of a page or a part of it. The tree is changed."""
    from markdownify import markdownify

    for tag in soup(LEFT_OUT):
        tag.decompose()
    for cell in soup(("td", "th")):
        _make_one_line(cell)
    try:
        text = markdownify(
            str(soup),
            heading_style="ATX",
            bullets="-",
            escape_misc=False,
            escape_underscores=False,
            escape_asterisks=False,
            table_infer_header=True,
            code_language_callback=lambda pre: pre.get(LANGUAGE) or "",
        )
    except RecursionError:  # tags within tags, deeper than anybody writes
        text = soup.get_text()
    return text.replace("\xa0", " ").strip()


def _make_one_line(cell: Tag) -> None:
    """A row of a Markdown table is one line: its code is inline, and a stroke in it parts no cells."""
    for block in cell("pre"):
        block.name = "code"
        block.string = " ".join(block.get_text().split())
    for text in cell.find_all(string=True):
        if "|" in text:
            text.replace_with(text.replace("|", r"\|"))
