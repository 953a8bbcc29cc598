"""The properties that a document states about itself, in any format.

A document is open to the readers of its source unless it names its own readers. Readers that are written down but
cannot be parsed must never count as none: such a document is refused, so that nobody reads it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from difflib import SequenceMatcher
from typing import Any

import yaml

from core.model.errors import MalformedInput

HEAD_LINES = 200  # lines with text at the top of a document that are searched for unparsed readers

_READERS = "readers"
_MISNAMED = frozenset(
    "access acl audience audiences confidential permission permissions private restricted restrict viewer viewers visibility".split()
)
"""Names of properties that seem to restrict a document, and are not ours."""
_OPEN = frozenset({"", "public", "false", "no"})  # values that restrict nothing
_SIMILAR = 0.8  # names this similar to `readers` are misspellings of it

_FRONT_MATTER = re.compile(r"\A\s*^---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FENCES = ("---", "+++", ";;;", "```", "~~~", "<!--", "{", "%YAML")  # possible beginnings of front matter
_LINE_END = re.compile("\r\n?|[\x85\u2028\u2029]")
_RESTRICTION = re.compile(r"readers?\b(?:[^\w\n:=]{0,4}[:=]|[^\n]{0,40}\b(?:channel|person):)", re.IGNORECASE)
_META = re.compile(
    r"<meta\b[^>]{0,200}?\b(?:name|property|itemprop|http-equiv)\s{0,9}=[\"'\s]{0,9}readers?\b", re.IGNORECASE
)
_READER = re.compile(r"public|channel:\S.*|person:[a-z]+:\S+")

HOW = "list `public`, `channel:NAME` or `person:PLATFORM:ID`"


@dataclass(frozen=True, slots=True)
class Properties:
    """The properties of a document. An empty title, and readers that are None, were not stated."""

    title: str = ""
    owner: str = ""
    updated_at: datetime | None = None
    readers: frozenset[str] | None = None


def split_front_matter(text: str) -> tuple[Properties, str]:
    """Return the properties in YAML front matter, and the text after it.

    Raises MalformedInput for invalid front matter, and for anything near the top that seems to name readers but is
    outside front matter, or in front matter that is unsupported or does not end.
    """
    text = _LINE_END.sub("\n", text)
    text = text[_leading_invisible(text) :]
    match = _FRONT_MATTER.match(text)
    properties = _properties_in(match[1]) if match else Properties()
    if properties.readers is None:
        if match:
            refuse_misunderstood_readers(match[1], HEAD_LINES + match[1].count("\n"))
        refuse_misunderstood_readers(text[match.end() :] if match else text)
    return properties, text[match.end() :] if match else text


def _leading_invisible(text: str) -> int:
    """Return the number of leading characters without width: byte-order marks, joiners, direction marks."""
    return next((at for at, sign in enumerate(text) if unicodedata.category(sign) != "Cf"), len(text))


def _properties_in(front_matter: str) -> Properties:
    try:
        # BaseLoader yields only strings, lists and mappings, so nothing is interpreted.
        loader = yaml.BaseLoader(front_matter)
        node = loader.get_single_node()
        values: Any = loader.construct_document(node) if node is not None else {}
    except (yaml.YAMLError, RecursionError) as error:
        # The error's own text quotes the document.
        line = (
            f", line {error.problem_mark.line + 2}"
            if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark
            else ""
        )
        raise MalformedInput(f"The front matter is not YAML{line}.") from error
    if not isinstance(values, dict):
        raise MalformedInput("The front matter is not a mapping of names to values.")
    names = Counter(_plain(str(key.value)) for key, _ in node.value) if node is not None else Counter[str]()
    if names[_READERS] > 1:
        raise MalformedInput("The front matter names `readers` twice.")
    return properties_from(values)


def properties_from(values: Mapping[str, Any]) -> Properties:
    """Return the properties in a mapping of strings, ignoring the case of names.

    Raises MalformedInput for an invalid date or invalid readers, and for a property that seems to restrict a document
    under another name than `readers`, because the document might be shown to everybody otherwise.
    """
    values = {_plain(str(name)): value for name, value in values.items()}
    if _READERS not in values:
        for name, value in values.items():
            if _seems_to_restrict(name) and _plain(_text(value) if isinstance(value, str) else "?") not in _OPEN:
                raise MalformedInput(f"`{name}` is not a known property: call it `readers`, and {HOW}.")
    return Properties(
        title=_text(values.get("title")),
        owner=_text(values.get("owner")),
        updated_at=_moment(_text(values["updated"])) if values.get("updated") else None,
        readers=_readers(values[_READERS]) if _READERS in values else None,
    )


def refuse_misunderstood_readers(text: str, lines: int = HEAD_LINES) -> None:
    """Raise MalformedInput if a line near the top begins with something like `readers:`.

    Only punctuation or a brace may precede it, because the word means nothing within a sentence. If the text begins
    like unparsed front matter, all of it is searched.
    """
    rows = [row for row in text.split("\n") if row.strip()]
    opening = rows[0].lstrip("\ufeff\u200b \t") if rows else ""
    for row in rows if opening.startswith(_FENCES) else rows[:lines]:
        plain = "".join(sign for sign in unicodedata.normalize("NFKC", row) if unicodedata.category(sign) != "Cf")
        if (found := _RESTRICTION.search(plain)) is None:
            continue
        before = plain[: found.start()]
        if before.lstrip().startswith("{") or not any(sign.isalnum() for sign in before):
            raise MalformedInput(
                f"The document seems to name its readers, but not in valid front matter, so it is withheld from everybody. "
                f"Begin the file with a line `---`, then `readers: […]`, then `---`; {HOW}."
            )


def refuse_misunderstood_meta(page: str) -> None:
    """Raise MalformedInput if an element of a page seems to name readers that were not parsed."""
    if _META.search(page):
        raise MalformedInput(f"The `meta` element for readers is not valid, so the page is withheld; {HOW}.")


def _plain(name: str) -> str:
    visible = "".join(sign for sign in unicodedata.normalize("NFKC", name) if unicodedata.category(sign) != "Cf")
    return visible.strip().lower()


def _seems_to_restrict(name: str) -> bool:
    misspelt = name.startswith("r") and SequenceMatcher(None, name[:20], _READERS).ratio() >= _SIMILAR
    return misspelt or name in _MISNAMED


def _text(value: Any) -> str:
    """Return a string; empty for other values, because nested aliases can expand beyond memory."""
    return value.strip() if isinstance(value, str) else ""


def _moment(text: str) -> datetime:
    try:
        parsed = datetime.fromisoformat(text)
        if len(text) == len("2026-01-31"):
            return datetime.combine(date(parsed.year, parsed.month, parsed.day), time(), UTC)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise MalformedInput(f"`updated: {text[:40]}` is not an ISO 8601 date.") from error


def _readers(value: Any) -> frozenset[str]:
    names = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    readers = frozenset(stripped for name in names if (stripped := _text(name).strip(" []'\"")))
    if not readers or not all(isinstance(name, str) for name in names):
        raise MalformedInput(f"`readers` names nobody: {HOW}.")
    if unknown := sorted(name for name in readers if not _READER.fullmatch(name)):
        raise MalformedInput(f"`readers` names {unknown[0][:40]!r}, which is not a reader: {HOW}.")
    return readers
