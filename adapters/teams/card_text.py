"""Text extraction from cards that other applications posted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from adapters.microsoft_graph.messages import Attachment

CARD = "application/vnd.microsoft."  # prefix of the content type of every card
READ = ("title", "subtitle", "activityTitle", "activitySubtitle", "text", "name", "value")  # in this order
CHILDREN = ("columns", "rows", "cells", "items", "facts", "sections", "body")
MAX_SIZE = 100_000  # characters of a card; Teams accepts about 28 KB
MAX_DEPTH = 20


def card_text(attachments: Iterable[Attachment]) -> str:
    """Return the texts of the cards, one per line, without buttons."""
    lines: list[str] = []
    for attachment in attachments:
        if (attachment.contentType or "").startswith(CARD) and isinstance(attachment.content, str):
            try:
                lines += _texts(json.loads(attachment.content[:MAX_SIZE]), MAX_DEPTH)
            except (ValueError, RecursionError):
                continue
    return "\n".join(lines)


def _texts(element: Any, depth: int) -> Iterator[str]:
    if not isinstance(element, dict) or not depth or element.get("isVisible") is False or _is_input(element):
        return
    own = [element[name].strip() for name in READ if isinstance(element.get(name), str)]
    own += ["".join(map(_run, _list(element.get("inlines")))).strip()]
    if said := " ".join(filter(None, own)):
        yield said
    for name in CHILDREN:
        for child in _list(element.get(name)):
            yield from _texts(child, depth - 1)


def _is_input(element: dict[str, Any]) -> bool:
    return str(element.get("type")).startswith("Input.")


def _run(run: Any) -> str:
    """Return a part of a line, with its spaces."""
    return str(run.get("text") or "") if isinstance(run, dict) else str(run)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
