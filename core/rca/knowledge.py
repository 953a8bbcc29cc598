"""The knowledge of the engine of causes, read from `knowledge.toml`: words of trouble, effects of changes, faults of objects."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from typing import Any

from core.model.trajectory import Responsibility

CAUSE, COMPLAINT, GRIEVANCE, TOPIC = 0.7, 0.5, 0.3, 0.0
STRENGTHS: Mapping[str, float] = {"cause": CAUSE, "complaint": COMPLAINT, "grievance": GRIEVANCE, "topic": TOPIC}
"""Strengths of phrases: one names a cause, one reports trouble, one may report trouble, one only gives its kind."""


class Kind(StrEnum):
    """The kind of thing that failed."""

    MEMORY = "memory"
    DISK = "disk"
    POOL = "connections"
    LIMIT = "limit"
    QUOTA = "quota"
    LOAD = "load"
    LOCK = "lock"
    NAME = "name resolution"
    NETWORK = "network"
    TIMEOUT = "timeout"
    ACCESS = "access"
    CERTIFICATE = "certificate"
    MISSING = "missing"
    FORM = "form"
    SCHEMA = "schema"
    CONFLICT = "conflict"
    CRASH = "crash"
    CODE = "code"
    PLACEMENT = "placement"
    IMAGE = "image"
    HOST = "host"
    STORE = "store"
    REQUEST = "request"
    PROBE = "probe"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words with which software reports trouble; they match at the start of a word, ignoring case. `who` may be unknown."""

    kind: Kind
    who: Responsibility | None
    strength: float
    pattern: str


@dataclass(frozen=True, slots=True)
class Effect:
    """The failures that a line of a diff can make, which was removed, added, lowered, raised, changed or switched."""

    direction: str
    makes: frozenset[Kind]
    line: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Saying:
    """Words of an event or a log about a fault. `cause` may contain `{x}`, the group of that name."""

    where: str
    words: re.Pattern[str]
    cause: str


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that an object can have. It is one only with a symptom of `hurts`, and with none of `acquits`.

    `name` is the name that people may read, `who` repairs it, and `next_check` contains `{name}` and `{detail}`.
    """

    id: str
    name: str
    kind: Kind
    who: Responsibility
    hurts: tuple[str, ...]
    acquits: tuple[str, ...]
    next_check: str
    says: tuple[Saying, ...]


def _effect(row: Mapping[str, Any]) -> Effect:
    makes = frozenset(Kind[kind] for kind in row["makes"])
    return Effect(row["direction"], makes, re.compile(rf"\A(?:{row['line']})", re.IGNORECASE))


def _faults(rows: Sequence[Mapping[str, Any]]) -> dict[str, Fault]:
    """Return the faults by their ids. What a row does not say, it has from the row that it is `like`."""
    whole: dict[str, dict[str, Any]] = {}
    for row in rows:
        inherited = {key: value for key, value in whole.get(row.get("like", ""), {}).items() if key != "says"}
        whole[row["id"]] = inherited | {**row}
    return {
        name: Fault(
            name,
            row["name"],
            Kind[row["kind"]],
            Responsibility[row["who"].upper()],
            tuple(row["hurts"]),
            tuple(row.get("acquits", ())),
            row["next"],
            tuple(
                Saying(where, re.compile(words, re.IGNORECASE), cause) for where, words, cause in row.get("says", ())
            ),
        )
        for name, row in whole.items()
    }


_TABLES = tomllib.loads((files("core.rca") / "knowledge.toml").read_text("utf-8"))
PHRASES = tuple(
    Phrase(
        Kind[row["kind"]],
        Responsibility[row["who"].upper()] if "who" in row else None,
        STRENGTHS[row["strength"]],
        pattern,
    )
    for row in _TABLES["phrase"]
    for pattern in row["says"]
)
"""All phrases, except those for the effects of a failure, such as a restart."""
EFFECTS = tuple(map(_effect, _TABLES["effect"]))
FAULTS = _faults(_TABLES["fault"])
