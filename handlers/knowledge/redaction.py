"""Redaction of names, addresses and secrets before text is stored or shown."""

from __future__ import annotations

from collections.abc import Callable

from core.model.document import Document

Redact = Callable[[Document], Document]

BEYOND = 2_000  # characters redacted beyond the limit, so that a secret cut by the limit is still recognised


def without_redaction(document: Document) -> Document:
    """Return the document unchanged, for a single user who may see everything."""
    return document


def redacted(text: str, redact: Redact) -> str:
    """Return the redacted text."""
    return redact(Document("", "", "", "", text)).text if text else ""


def redacted_beginning(text: str, limit: int, redact: Redact) -> str:
    """Return the first `limit` characters of a long text, redacted.

    Text beyond the limit is redacted first, because a truncated password would not be recognised.
    """
    return redacted(text[: limit + BEYOND], redact)[:limit]
