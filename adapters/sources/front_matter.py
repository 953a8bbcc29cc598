"""The properties that a document states about itself, whatever its format.

A document is open to the readers of its source unless it names readers of its own. Readers that were written down but
not understood must therefore never count as none: such a document is refused, so that nobody reads it.
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

HEAD_LINES = 200  # lines with text at the top of a document in which readers are looked for that were not understood

_READERS = "readers"
_MISNAMED = frozenset(
    "access acl audience audiences confidential permission permissions private restricted restrict viewer viewers visibility".split()
)
"""Names of properties that seem to restrict a document, and are not ours."""
_OPEN = frozenset({"", "public", "false", "no"})  # values of those that restrict nothing
_SIMILAR = 0.8  # as similar as this to `readers`, a name is a misspelling of it

_FRONT_MATTER = re.compile(r"\A\s*^---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FENCES = ("---", "+++", ";;;", "```", "~~~", "<!--", "{", "%YAML")  # with these, a front matter may begin
_LINE_END = re.compile("\r\n?|[\x85\u2028\u2029]")
_RESTRICTION = re.compile(r"readers?\b(?:[^\w\n:=]{0,4}[:=]|[^\n]{0,40}\b(?:channel|person):)", re.IGNORECASE)
_META = re.compile(
    r"<meta\b[^>]{0,200}?\b(?:name|property|itemprop|http-equiv)\s{0,9}=[\"'\s]{0,9}readers?\b", re.IGNORECASE
)
_READER = re.compile(r"public|channel:\S.*|person:[a-z]+:\S+")

HOW = "list `public`, `channel:NAME` or `person:PLATFORM:ID`"


@dataclass(frozen=True, slots=True)
class Properties:
    """The properties in the head of a document; an empty title, and readers that are None, were not stated."""

    title: str = ""
    owner: str = ""
    updated_at: datetime | None = None
    readers: frozenset[str] | None = None


def split_front_matter(text: str) -> tuple[Properties, str]:
    """Return the properties in YAML front matter, and the text after it.

    Raises MalformedInput for front matter that is not YAML, and for anything that seems to name readers elsewhere near
    the top of the text: in front matter of another format, one that does not end, or none at all.
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
    """Return how many characters at the start have no width: marks of the byte order, joiners, directions."""
    return next((at for at, sign in enumerate(text) if unicodedata.category(sign) != "Cf"), len(text))


def _properties_in(front_matter: str) -> Properties:
    try:
        # BaseLoader yields nothing but strings, lists and mappings: nothing in a document is interpreted.
        loader = yaml.BaseLoader(front_matter)
        node = loader.get_single_node()
        values: Any = loader.construct_document(node) if node is not None else {}
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
    names = Counter(_plain(str(key.value)) for key, _ in node.value) if node is not None else Counter[str]()
    if names[_READERS] > 1:
        raise MalformedInput("The front matter names `readers` twice.")
    return properties_from(values)


def properties_from(values: Mapping[str, Any]) -> Properties:
    """Return the properties in a mapping of texts, by names in any case.

    Raises MalformedInput for a date or readers that make no sense, and for a property that seems to restrict a document
    under another name than `readers`: the document might be shown to everybody otherwise.
    """
    values = {_plain(str(name)): value for name, value in values.items()}
    if _READERS not in values:
        for name, value in values.items():
            if _seems_to_restrict(name) and _plain(_text(value) if isinstance(value, str) else "?") not in _OPEN:
                raise MalformedInput(f"`{name}` is not understood: call it `readers`, and {HOW}.")
    return Properties(
        title=_text(values.get("title")),
        owner=_text(values.get("owner")),
        updated_at=_moment(_text(values["updated"])) if values.get("updated") else None,
        readers=_readers(values[_READERS]) if _READERS in values else None,
    )


def refuse_misunderstood_readers(text: str, lines: int = HEAD_LINES) -> None:
    """Raise MalformedInput if a line near the top begins with something like `readers:`.

    Only punctuation may stand before it, or else the line begins with a brace; in a sentence, the word means nothing.
    Where the text begins like a front matter, which then was not understood, all of it is looked through.
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
                f"It seems to name its readers, but not in a front matter that is understood: nobody may read it. "
                f"Begin the file with a line `---`, then `readers: […]`, then `---`; {HOW}."
            )


def refuse_misunderstood_meta(page: str) -> None:
    """Raise MalformedInput if an element of a page seems to name readers. For pages whose readers were not understood."""
    if _META.search(page):
        raise MalformedInput(f"Its `meta` element of readers is not understood: nobody may read it; {HOW}.")


def _plain(name: str) -> str:
    visible = "".join(sign for sign in unicodedata.normalize("NFKC", name) if unicodedata.category(sign) != "Cf")
    return visible.strip().lower()


def _seems_to_restrict(name: str) -> bool:
    misspelt = name.startswith("r") and SequenceMatcher(None, name[:20], _READERS).ratio() >= _SIMILAR
    return misspelt or name in _MISNAMED


def _text(value: Any) -> str:
    """Empty for anything but a text: a few lines of lists that hold each other may be more than fits in memory."""
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
        raise MalformedInput(f"`readers` names {unknown[0][:40]!r}, which is no reader: {HOW}.")
    return readers
