"""The text of a PDF file, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from io import BytesIO

import structlog

from adapters.sources.front_matter import Properties
from core.errors import MalformedInput

MAX_PAGES = 2_000  # of one file

log = structlog.get_logger()


def pdf_pages(content: bytes) -> tuple[Properties, Iterator[tuple[int, str]]]:
    """What the file says of itself, and the number and text of each page that has text, counted from 1.

    A page that cannot be read is logged and left out. Raises MalformedInput for a file that is damaged, encrypted or
    longer than MAX_PAGES.
    """
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise MalformedInput("The PDF file is encrypted.")
        count, properties = len(reader.pages), _properties(reader)
    except (PyPdfError, *_DAMAGED) as error:
        raise MalformedInput(f"The PDF file cannot be read: {error}.") from error
    if count > MAX_PAGES:
        raise MalformedInput(f"The PDF file has more than {MAX_PAGES} pages.")

    def pages() -> Iterator[tuple[int, str]]:
        for number in range(1, count + 1):
            try:
                text = reader.pages[number - 1].extract_text().strip()
            except (PyPdfError, *_DAMAGED) as error:
                log.warning("page_left_out", page=number, error=str(error))
                continue
            if text:
                yield number, text

    return properties, pages()


# What the library raises, beside its own errors, for objects that are not what the file says they are.
_DAMAGED = (ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError, RecursionError, OverflowError)


def _properties(reader) -> Properties:
    metadata = reader.metadata
    if metadata is None:
        return Properties()
    changed = metadata.modification_date or metadata.creation_date
    return Properties(
        title=str(metadata.title or "").strip(),
        updated_at=changed.replace(tzinfo=changed.tzinfo or UTC) if changed else None,
    )
