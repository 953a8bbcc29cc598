"""Read what a message and its cards show, with what is only coloured or linked.

The cards of all chats are nested objects of much the same names: Slack's attachments and blocks, Adaptive Cards, and the
older cards of Office connectors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from core.model.conversation import cut_message

MAX_DEPTH = 12  # nested elements
MAX_ELEMENTS = 400  # of one message
NO_FALLBACK = "[no preview available]"  # Slack's own text for an attachment of blocks

COLOURS = ("color", "themeColor")
ADDRESSES = ("title_link", "url", "uri")
NAMES = ("title", "name", "text")
TEXTS = ("pretext", "author_name", "title", "activityTitle", "activitySubtitle", "text", "activityText")
INNER = (
    *("blocks", "fields", "elements", "attachments", "actions"),
    *("body", "items", "columns", "sections", "facts", "potentialAction", "targets", "cells", "rows"),
)
SILENT = re.compile(r"image|button|action\.|input\.", re.IGNORECASE)  # elements whose texts are no lines
_MARKS = re.compile(r"^#{1,6}\s++|(?<![\w*_~])[*_~]++(?=\S)|(?<=[^\s*_~])[*_~]++(?!\w)|`+", re.MULTILINE)


@dataclass(slots=True)
class Shown:
    """The parts of a message in the order in which they are seen, as in `Posted`.

    `link` is the pattern of a link in a text, with the groups `text` and `address`. `plain` reads the chat's other markup.
    """

    link: re.Pattern[str]
    plain: Callable[[str], str] = str
    lines: list[str] = field(default_factory=list[str])
    fields: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    links: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    colours: list[str] = field(default_factory=list[str])
    _elements: int = 0

    def read(self, element: Mapping[str, Any], depth: int = MAX_DEPTH) -> None:
        """Add what an element of a card shows, or a message that is such an element. Malformed parts are left out."""
        self._elements += 1
        if not depth or self._elements > MAX_ELEMENTS or element.get("isVisible") is False:
            return
        self.colours += [colour.lower().removeprefix("#") for colour in _texts(element, COLOURS)]
        name, value = next(_texts(element, NAMES), ""), next(_texts(element, ("value",)), "")
        for address in _texts(element, ADDRESSES):
            self.links.append((self._text(name), address))
        before = len(self.lines) + len(self.fields)
        if SILENT.match(next(_texts(element, ("type",)), "")) or "url" in element or "uri" in element:
            return
        if name and value:
            self._add_field(name, value)
        else:
            for text in _texts(element, TEXTS):
                self.add_text(text)
        for key in INNER:
            for inner in objects(element.get(key)):
                name, _, value = next(_texts(inner, ("text",)), "").partition("\n")
                if key == "fields" and value:
                    self._add_field(name, value)
                else:
                    self.read(inner, depth - 1)
        if len(self.lines) + len(self.fields) == before:
            for text in _texts(element, ("fallback",)):
                self.add_text("" if text == NO_FALLBACK else text)

    def add_text(self, text: str) -> None:
        """Add a text of several lines, and its links."""
        self.links += [(self._text(each["text"] or ""), each["address"]) for each in self.link.finditer(text)]
        self.lines += [line for line in self._text(text).splitlines() if line.strip()]

    def _add_field(self, name: str, value: str) -> None:
        self.links += [(self._text(each["text"] or ""), each["address"]) for each in self.link.finditer(value)]
        self.fields.append((self._text(name).rstrip(": "), self._text(value)))

    def _text(self, marked: str) -> str:
        """Return a text without markup and addresses."""
        return _MARKS.sub("", self.plain(self.link.sub(lambda match: match["text"] or match["address"], marked)))


def objects(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _texts(element: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    """Yield the texts of an element under these keys. A text may be an object that has it."""
    for key in keys:
        value = element.get(key)
        text = value.get("text") if isinstance(value, Mapping) else value
        if text and isinstance(text, str):
            yield cut_message(text)
