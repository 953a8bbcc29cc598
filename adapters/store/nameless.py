"""Removal of a person's names and words from a stored object, by the marks of its fields (`Personal`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from functools import cache
from itertools import chain, repeat
from types import UnionType
from typing import Any, get_args, get_type_hints

from core.model.conversation import Personal, PersonName
from core.model.curated import answer_id

NOBODY = "forgotten"  # replaces a person who asked to be forgotten
UNKNOWN = PersonName  # the type of a field that the stored type no longer has: a text that is just a name is removed


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A person to be forgotten.

    It contains the person's names with the platform's id, and keys (`PLATFORM:ID`). `is_in` matches an id that contains
    the person's, which is between colons and may itself contain some.
    """

    names: frozenset[str]
    keys: frozenset[str]
    is_in: re.Pattern[str]


def is_personal(kind: Any) -> bool:
    """Return whether a type has a marked field, or contains a type that has one."""
    parts = _hints(kind).values() if is_dataclass(kind) else get_args(kind)
    return any(isinstance(part, Personal) or is_personal(part) for part in parts)


def nameless(value: Any, kind: Any, who: Forgotten) -> Any:
    """Return the JSON of a value of this type without a person's names and words, as the fields' marks say."""
    if isinstance(kind, UnionType):  # with None
        kind, _ = get_args(kind)
    if isinstance(value, str):
        return _nameless_text(value, kind, who)
    if isinstance(value, dict) and is_dataclass(kind):
        return _nameless_object(value, _hints(kind), who)
    inside = (not _marks(kind) and get_args(kind)) or (UNKNOWN,)
    if isinstance(value, dict):
        return {key: nameless(each, inside[-1], who) for key, each in value.items()}
    if isinstance(value, list):
        kinds = repeat(inside[0]) if inside[1:] in ((), (...,)) else chain(inside, repeat(UNKNOWN))
        return [nameless(each, of_each, who) for each, of_each in zip(value, kinds, strict=False)]
    return value


def _nameless_object(value: dict[str, Any], hints: Mapping[str, Any], who: Forgotten) -> dict[str, Any]:
    kinds = {key: hints.get(key, UNKNOWN) for key in value}
    kinds |= {key: str for key, kind in kinds.items() if not all(each in value.values() for each in _marks(kind)[1:])}
    texts = {key: nameless(each, kinds[key], who) for key, each in value.items()}
    if any(texts[key] != value[key] for key, kind in kinds.items() if Personal.NAME in _marks(kind)):
        texts |= {key: "" for key, kind in kinds.items() if Personal.WORDS in _marks(kind)}
    return texts


def _nameless_text(text: str, kind: Any, who: Forgotten) -> str:
    if text.removeprefix("person:") in who.keys:
        return NOBODY
    first = next((name for name in who.names if f"{text} ".startswith(f"{name} ")), "")
    match _marks(kind)[:1]:
        case [Personal.NAME] if text in who.names:
            return NOBODY
        case [Personal.NAME_FIRST] if first:
            return f"{NOBODY}{text.removeprefix(first)}"
        case [Personal.EVENT] if who.is_in.search(text):
            return answer_id(text)  # as such ids are generated today
        case _:
            return text


def _marks(kind: Any) -> tuple[Any, ...]:
    return getattr(kind, "__metadata__", ())


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    """Return the types of the fields of a dataclass."""
    return get_type_hints(kind, include_extras=True)
