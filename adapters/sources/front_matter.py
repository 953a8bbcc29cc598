"""The properties that a document says of itself, whatever its format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

import yaml

from core.errors import MalformedInput

_FRONT_MATTER = re.compile(r"\A\s*^---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Properties:
    """What a document's head says; an empty title, and readers that are None, say that it says nothing of them."""

    title: str = ""
    owner: str = ""
    updated_at: datetime | None = None
    readers: frozenset[str] | None = None


def split_front_matter(text: str) -> tuple[Properties, str]:
    """The properties in YAML front matter, and the text after it. Raises MalformedInput if it is not YAML.

    However its lines end: whoever missed the front matter would show everybody what only its `readers` may read.
    """
    text = text.replace("\r\n", "\n")
    match = _FRONT_MATTER.match(text)
    if not match:
        return Properties(), text
    try:
        # BaseLoader yields nothing but strings, lists and mappings: nothing in a document is interpreted.
        values: Any = yaml.load(match[1], Loader=yaml.BaseLoader)  # noqa: S506
    except (yaml.YAMLError, RecursionError) as error:
        # The error's own text quotes the document, which may hold anything.
        line = (
            f", line {error.problem_mark.line + 2}"
            if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark
            else ""
        )
        raise MalformedInput(f"The front matter is not YAML{line}.") from error
    if not isinstance(values, dict):
        raise MalformedInput("The front matter is not a mapping of names to values.")
    return properties_from(values), text[match.end() :]


def properties_from(values: Mapping[str, Any]) -> Properties:
    """The properties in a mapping of texts, by names in any case. Raises MalformedInput for a date or for readers that make no sense.

    Readers that cannot be understood must fail the document: it might be shown to everybody otherwise.
    """
    values = {str(name).lower(): value for name, value in values.items()}
    return Properties(
        title=_text(values.get("title")),
        owner=_text(values.get("owner")),
        updated_at=_moment(_text(values["updated"])) if values.get("updated") else None,
        readers=_readers(values["readers"]) if "readers" in values else None,
    )


def _text(value: Any) -> str:
    """Empty for anything but a text: a few lines of lists that hold each other may be more than fits in memory."""
    return value.strip() if isinstance(value, str) else ""


def _moment(text: str) -> datetime:
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError as error:
        raise MalformedInput(f"`updated: {text}` is not an ISO 8601 date.") from error
    if len(text) == len("2026-01-31"):
        return datetime.combine(date(parsed.year, parsed.month, parsed.day), time(), UTC)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _readers(value: Any) -> frozenset[str]:
    names = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    readers = frozenset(stripped for name in names if (stripped := _text(name).strip(" []'\"")))
    if not readers or not all(isinstance(name, str) for name in names):
        raise MalformedInput("`readers` names nobody: list `public`, `channel:NAME` or `person:PLATFORM:ID`.")
    return readers
