"""Names, addresses and secrets are taken out of texts before these are kept or shown."""

from __future__ import annotations

from collections.abc import Callable

from core.model.document import Document

Redact = Callable[[Document], Document]

BEYOND = 2_000  # characters after those that are kept, among which a password that begins in these may end


def as_it_is(document: Document) -> Document:
    """Takes nothing out: for a single user, who may see it all."""
    return document


def redacted(text: str, redact: Redact) -> str:
    """A text that stands for itself."""
    return redact(Document("", "", "", "", text)).text if text else ""


def redacted_beginning(text: str, limit: int, redact: Redact) -> str:
    """The same of a long text, whose first `limit` characters are kept: half a password is not known for one."""
    return redacted(text[: limit + BEYOND], redact)[:limit]
