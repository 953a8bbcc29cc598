"""The text of what is attached to a message of Microsoft Teams: cards, and messages that are forwarded or quoted.

https://learn.microsoft.com/microsoftteams/platform/task-modules-and-cards/cards/cards-reference
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from adapters.html import markdown_of, parsed
from core.model.conversation import cut_message

CARD = "application/vnd.microsoft."  # prefix of the content type of every card
FORWARDED, QUOTED = "forwardedMessageReference", "messageReference"
READ = (
    "title",
    "subtitle",
    "activityTitle",
    "activitySubtitle",
    "text",
    "name",
    "value",
    "codeSnippet",
)  # in this order
CHILDREN = ("columns", "rows", "cells", "items", "facts", "sections", "body", "pages")
MAX_SIZE = 100_000  # characters of a card; Teams accepts about 28 KB
MAX_DEPTH = 20


def attached_text(kind: str, content: Any) -> str:
    """Return the texts of an attachment, one per line, without buttons; empty if it is neither card nor message.

    `content` is JSON, as text or read.
    """
    if not kind.startswith((CARD, FORWARDED, QUOTED)):
        return ""
    try:
        card = json.loads(content[:MAX_SIZE]) if isinstance(content, str) else content
    except (ValueError, RecursionError):
        return ""
    if kind == FORWARDED:
        original = card.get("originalMessageContent") if isinstance(card, dict) else None
        return markdown_of(parsed(cut_message(original))) if isinstance(original, str) else ""
    if kind == QUOTED:
        preview = card.get("messagePreview") if isinstance(card, dict) else None
        return cut_message(preview).strip() if isinstance(preview, str) else ""
    return cut_message("\n".join(_texts(card, MAX_DEPTH)))


def _texts(element: Any, depth: int) -> Iterator[str]:
    if not isinstance(element, dict) or not depth or element.get("isVisible") is False or _is_input(element):
        return
    own = [element[name].strip() for name in READ if isinstance(element.get(name), str)]
    own += ["".join(map(_run, _list(element.get("inlines")))).strip()]
    if text := " ".join(filter(None, own)):
        yield text
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
