"""The properties that a document states about itself, in any format.

A document is open to the readers of its source unless it names its own readers. Readers that are written down but
cannot be parsed must never count as none: such a document is refused, so that nobody reads it.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, product
from typing import Any

import yaml
from dateutil import parser as dates

from adapters.sources.restrictions import (
    HOW,
    Statement,
    leading_statements,
    named_values,
    plain,
    refuse_restriction,
    statements_above,
    unparsed_readers,
)
from core.model.conversation import PUBLIC
from core.model.errors import MalformedInput
from core.model.text import refuse_deep_yaml

NOBODY = "nobody"  # a reader name that nobody has

_READERS = "readers"
_FRONT_MATTER = re.compile(r"\A\s*^---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_LINE_END = re.compile("\r\n?|[\x85\u2028\u2029]")
_ASSUMED = (datetime(1999, 1, 2), datetime(2004, 10, 11))  # noqa: DTZ001 — they stand for what a date lacks
_UNDATED = "Its date `updated: {}` is not understood or ambiguous, so it counts as undated: write it as 2026-01-31."
_PEOPLE = re.compile(
    r"(?<![^\W_])(?:owners?|teams?|contacts?|maintainers?|slack|channels?|e?mail|leads?|groups?|approvers?|on[-_]?call)(?![^\W_])",
    re.IGNORECASE,
)
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
    both = stated if PUBLIC in rights else rights & stated or frozenset({NOBODY})
    return rights if PUBLIC in stated else both


@dataclass(frozen=True, slots=True)
class Stated:
    """The statements of a document about itself: `values` by the names of its properties, and `others` in any other form.

    Only `values` can name readers. Each of both may say that not everybody may read the document.
    """

    values: Sequence[tuple[str, Any]] = ()
    others: Iterable[Statement] = ()


def split_front_matter(text: str) -> tuple[Stated, str]:
    """Return what YAML front matter and the text below state, and that text. Raises MalformedInput for invalid YAML.

    Leading characters without width are dropped: byte-order marks, joiners, direction marks.
    """
    text = _LINE_END.sub("\n", text)
    text = text[next((at for at, sign in enumerate(text) if unicodedata.category(sign) != "Cf"), len(text)) :]
    match = _FRONT_MATTER.match(text)
    if match is None:
        return Stated((), chain(leading_statements(text), statements_above(text))), text
    values, others = _mapping(match[1])
    rest = text[match.end() :]
    outside = chain(unparsed_readers(match[1].split("\n")), leading_statements(rest), statements_above(rest))
    return Stated(values, chain(others, outside)), rest


def _mapping(front_matter: str) -> tuple[list[tuple[str, Any]], Iterable[Statement]]:
    """Return the properties in YAML, and the values at any depth. Raises MalformedInput."""
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
    # A name that is written twice is in `values` once.
    written = [(str(key.value), values.get(key.value)) for key, _ in node.value] if node is not None else []
    return written, named_values(node) if node is not None else ()


def people_named(stated: Stated) -> str:
    """Return the properties that name people, teams or channels, each as a paragraph above the text of a document."""
    return "".join(
        f"{plain(name).replace('_', ' ').capitalize()}: {', '.join(named)}\n\n"
        for name, value in stated.values
        if _PEOPLE.search(plain(name))
        and (named := [*filter(None, map(_text, value if isinstance(value, list) else [value]))])
    )


def properties_of(stated: Stated, open_labels: Collection[str] = ()) -> Properties:
    """Return the properties that a document states, ignoring the case of names.

    Raises MalformedInput for readers that are invalid or named twice, and, if none are named, for any statement that
    speaks of access and is not certainly open, because the document might be shown to everybody otherwise. `open_labels`
    are further values that are open.
    """
    names = [plain(name).lower() for name, _ in stated.values]
    values = dict(zip(names, (value for _, value in stated.values), strict=True))
    if names.count(_READERS) > 1:
        raise MalformedInput("The document names `readers` twice.")
    if _READERS not in values:
        for name, value in chain(stated.values, stated.others):
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, str):
                    refuse_restriction(name, item, open_labels)
    updated_at = _moment(written := _text(values.get("updated")))
    return Properties(
        title=_text(values.get("title")),
        owner=_text(values.get("owner")),
        updated_at=updated_at,
        readers=_readers(values[_READERS]) if _READERS in values else None,
        note=_UNDATED.format(written[:40]) if written and updated_at is None else "",
    )


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
