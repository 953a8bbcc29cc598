"""Read a message of another bot in Teams, as Microsoft Graph returns it: its text, and its cards of both kinds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from adapters.microsoft_graph import GraphMessage, text_of
from core.model.conversation import Place, Platform
from core.model.posted import Posted
from core.model.text import load_json

MAX_DEPTH = 12  # nested elements
MAX_PARTS = 200  # of one message

_LINK = re.compile(r"\[([^\[\]]*)\]\((https?://[^()\s]*)\)")
_MARKS = re.compile(r"(?<![\w*_~#])[*_~#]++\s*+(?=\S)|(?<=[^\s*_~])[*_~]++(?!\w)|`+")
_TEXTS = ("title", "activityTitle", "activitySubtitle", "text", "activityText")
_INNER = ("body", "items", "columns", "sections", "facts", "actions", "potentialAction", "targets", "cells", "rows")


def posted_of(message: GraphMessage, channel: str) -> Posted | None:
    """Return the message of a bot or connector as its channel shows it; None for anything else."""
    application = message.sender.application if message.sender else None
    if application is None or not application.id or not message.is_said:
        return None
    cards = [card for each in message.attachments or () if isinstance(card := _card(each.content), Mapping)]
    own = text_of(message.model_copy(update={"attachments": None}))
    parts = [*_linked(own), *(part for card in cards for part in _parts(card, MAX_DEPTH))][:MAX_PARTS]
    lines = [line for kind, text, _ in parts if kind == "line" for line in _plain(text).splitlines() if line.strip()]
    return Posted(
        place=Place(Platform.TEAMS, channel, message.replyToId),
        message_id=message.id,
        sender=application.id,
        sender_name=application.displayName or "",
        at=message.lastEditedDateTime or message.createdDateTime,
        lines=tuple(lines),
        fields=tuple((_plain(name).rstrip(":"), _plain(value)) for kind, name, value in parts if kind == "field"),
        links=tuple(dict.fromkeys((_plain(text), address) for kind, text, address in parts if kind == "link")),
        colours=tuple(text for kind, text, _ in parts if kind == "colour"),
        revision=message.lastEditedDateTime.isoformat() if message.lastEditedDateTime else "",
    )


def _card(content: Any) -> Any:
    with suppress(ValueError, TypeError):
        return load_json(content) if isinstance(content, str) else content
    return None


def _parts(element: Mapping[str, Any], depth: int) -> Iterator[tuple[str, str, str]]:
    if not depth or element.get("isVisible") is False:
        return
    kind = str(element.get("type") or "")
    if isinstance(colour := element.get("themeColor") or element.get("color"), str):
        yield "colour", colour.lower().removeprefix("#"), ""
    name, value = element.get("name") or element.get("title"), element.get("value")
    if isinstance(address := element.get("url") or element.get("uri"), str):
        yield "link", str(name or ""), address
    elif isinstance(value, str) and isinstance(name, str):
        yield "field", name, value
    elif not kind.startswith("Input."):
        for text in (element.get(key) for key in _TEXTS):
            yield from _linked(text) if isinstance(text, str) else ()
    for inner in (each for key in _INNER if isinstance(each := element.get(key), list)):
        for each in inner:
            yield from _parts(each, depth - 1) if isinstance(each, Mapping) else ()


def _linked(text: str) -> Iterator[tuple[str, str, str]]:
    yield "line", text, ""
    for match in _LINK.finditer(text):
        yield "link", match[1], match[2]


def _plain(text: str) -> str:
    return _MARKS.sub("", _LINK.sub(r"\1", text))
