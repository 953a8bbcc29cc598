"""Where a statement or an excerpt stands, as a citation."""

from __future__ import annotations

from core.answering.answer import Citation
from core.answering.statements import Statement
from core.model.anchors import anchor
from core.model.document import Passage
from core.model.layout import url_of

MAX_QUOTE = 500  # characters of a citation's quote


def citation(number: int, statement: Statement) -> Citation:
    """Return the citation of the section that a statement stands in; the statement is its quote."""
    return cited(number, statement.passage, statement.heading, statement.repeat, statement.text)


def cited(number: int, passage: Passage, heading: str, repeat: int, quote: str) -> Citation:
    """Return the citation of a section of a passage: the `repeat`-th heading of that text, counted from 0."""
    return Citation(
        number=number,
        document_id=passage.document_id,
        passage_id=passage.id,
        title=passage.title,
        heading=heading,
        anchor=anchor(passage.anchors, passage.title, heading, repeat),
        url=_url(passage, quote),
        quote=quote if len(quote) <= MAX_QUOTE else f"{quote[: MAX_QUOTE - 1]}…",
        updated_at=passage.updated_at,
    )


def place_of(statement: Statement) -> tuple[str, str, int, str]:
    """Return what is cited as one: the section of a passage, or the message of a thread."""
    return statement.passage.id, statement.heading, statement.repeat, _url(statement.passage, statement.text)


def _url(passage: Passage, quote: str) -> str:
    """Of the very message in a thread, or of the document."""
    return url_of(passage.text, passage.part_urls, quote) or passage.url
