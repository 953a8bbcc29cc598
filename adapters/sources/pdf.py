"""Text extraction from PDF files, page by page."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC
from io import BytesIO
from typing import TYPE_CHECKING

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]  # it has no types

from adapters.sources.front_matter import Stated
from adapters.sources.restrictions import file_statements, leaves
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
        count, stated = len(reader.pages), _stated(reader)
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


def _stated(reader: PdfReader) -> Stated:
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
