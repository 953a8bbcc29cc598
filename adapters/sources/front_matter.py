"""The properties that a document states about itself, in any format.

A document is open to the readers of its source unless it names its own readers. Readers that are written down but
cannot be parsed must never count as none: such a document is refused, so that nobody reads it.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import Any

import yaml
from dateutil import parser as dates

from adapters.sources.restrictions import (
    HOW,
    plain,
    refuse_restriction,
    refuse_restrictions_above,
    refuse_restrictions_in,
    refuse_unparsed_readers,
)
from core.model.conversation import PUBLIC
from core.model.errors import MalformedInput
from core.model.lenient_formats import refuse_deep_yaml

NOBODY = "nobody"  # a reader name that nobody has

_READERS = "readers"
_FRONT_MATTER = re.compile(r"\A\s*^---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_LINE_END = re.compile("\r\n?|[\x85\u2028\u2029]")
_META = re.compile(
    r"<meta\b[^>]{0,200}?\b(?:name|property|itemprop|http-equiv)\s{0,9}=[\"'\s]{0,9}readers?\b", re.IGNORECASE
)
_ASSUMED = (datetime(1999, 1, 2), datetime(2004, 10, 11))  # noqa: DTZ001 — they stand for what a date lacks
_UNDATED = "Its date `updated: {}` is not understood or ambiguous, so it counts as undated: write it as 2026-01-31."
_READER = re.compile(r"public|channel:\S.*|person:[a-z]+:\S+")


@dataclass(frozen=True, slots=True)
class Properties:
    """The properties of a document. An empty title, and readers that are None, were not stated.

    `note`: what was not understood, although the document can be read; empty if nothing.
    """

    title: str = ""
    owner: str = ""
    updated_at: datetime | None = None
    readers: frozenset[str] | None = None
    note: str = ""


def narrowed(rights: frozenset[str], stated: frozenset[str]) -> frozenset[str]:
    """Return who may read a document by its rights and by the readers that it states itself, which cannot widen them."""
    if PUBLIC in stated:
        return rights
    return stated if PUBLIC in rights else rights & stated or frozenset({NOBODY})


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
            refuse_unparsed_readers(match[1].split("\n"))
        refuse_restrictions_above(text[match.end() :] if match else text)
    return properties, text[match.end() :] if match else text


def _leading_invisible(text: str) -> int:
    """Return the number of leading characters without width: byte-order marks, joiners, direction marks."""
    return next((at for at, sign in enumerate(text) if unicodedata.category(sign) != "Cf"), len(text))


def _properties_in(front_matter: str) -> Properties:
    try:
        refuse_deep_yaml(front_matter)
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
    names = Counter(plain(str(key.value)).lower() for key, _ in node.value) if node is not None else Counter[str]()
    if names[_READERS] > 1:
        raise MalformedInput("The front matter names `readers` twice.")
    if node is not None and not names[_READERS]:
        refuse_restrictions_in(node)
    return properties_from(values)


def properties_from(values: Mapping[str, Any]) -> Properties:
    """Return the properties in a mapping of strings, ignoring the case of names.

    Raises MalformedInput for invalid readers, and for a property that speaks of access under another name than
    `readers`, because the document might be shown to everybody otherwise.
    """
    values = {plain(str(name)).lower(): value for name, value in values.items()}
    if _READERS not in values:
        for name, value in values.items():
            if isinstance(value, str):
                refuse_restriction(name, value)
    updated_at = _moment(stated := _text(values.get("updated")))
    return Properties(
        title=_text(values.get("title")),
        owner=_text(values.get("owner")),
        updated_at=updated_at,
        readers=_readers(values[_READERS]) if _READERS in values else None,
        note=_UNDATED.format(stated[:40]) if stated and updated_at is None else "",
    )


def refuse_misunderstood_meta(page: str) -> None:
    """Raise MalformedInput if an element of a page seems to name readers that were not parsed."""
    if _META.search(page):
        raise MalformedInput(f"The `meta` element for readers is not valid, so the page is withheld; {HOW}.")


def _text(value: Any) -> str:
    """Return a string; empty for other values, because nested aliases can expand beyond memory."""
    return value.strip() if isinstance(value, str) else ""


def _moment(text: str) -> datetime | None:
    """Return the moment that a date names; None if it names none, or may name several."""
    try:
        try:
            moments = {datetime.fromisoformat(text)}
        except ValueError:
            moments = _readings(text)
        parsed = min(moments) if len(moments) == 1 else None
        return parsed and (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, TypeError, Warning):
        return None


def _readings(text: str) -> set[datetime]:
    """Return every moment that a date may name: 3/4 is in March or in April, and a missing year can be any."""
    if not any(map(str.isdigit, text)) or text.isdigit():
        return set()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an unknown time zone
        return {
            dates.parse(text, dayfirst=day, yearfirst=year, default=default)
            for day, year, default in product((False, True), (False, True), _ASSUMED)
        }


def _readers(value: Any) -> frozenset[str]:
    names = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    readers = frozenset(stripped for name in names if (stripped := _text(name).strip(" []'\"")))
    if not readers or not all(isinstance(name, str) for name in names):
        raise MalformedInput(f"`readers` names nobody: {HOW}.")
    if unknown := sorted(name for name in readers if not _READER.fullmatch(name)):
        raise MalformedInput(f"`readers` names {unknown[0][:40]!r}, which is not a reader: {HOW}.")
    return readers
