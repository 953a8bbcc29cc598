"""The JSON of an incident, which replicas of this version and of the one before read and write at the same time.

The fields of its parts are stored among its own. Replicas of the version before know five fields in place of `relations`:
they ignore `relations` and do not write it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from enum import Enum, auto
from functools import cache
from typing import Any, get_args, get_type_hints

from core.model.relation import RelationKind

Json = Mapping[str, Any]


class Stored(Enum):
    """The mark of a field that says how it is stored. INLINE: its own fields are stored in its place."""

    INLINE = auto()


@cache
def inline_parts(kind: type) -> Mapping[str, Any]:
    """Return the types of the fields of a dataclass that are stored inline."""
    hints = get_type_hints(kind, include_extras=True)
    marked = {name: hint for name, hint in hints.items() if Stored.INLINE in getattr(hint, "__metadata__", ())}
    return {name: get_args(hint)[0] for name, hint in marked.items()}


def with_parts(stored: Json, kind: type) -> Json:
    """Return the JSON with the parts whose fields are stored inline."""
    parts = inline_parts(kind).items()
    return {
        **stored,
        **{
            name: {each.name: stored[each.name] for each in fields(part) if each.name in stored} for name, part in parts
        },
    }


def with_parts_inline(written: Json, kind: type) -> Json:
    """Return the JSON with the fields of parts in place of these."""
    flat = dict(written)
    for name in inline_parts(kind):
        flat |= flat.pop(name)
    return flat


def with_relations(stored: Json) -> Json:
    """Return the JSON with `relations`: unchanged if it has them, otherwise read from the fields of the version before."""
    return stored if "relations" in stored else {**stored, "relations": [*_relations(stored)]}


def with_earlier_fields(written: Json) -> dict[str, Any]:
    """Return the JSON with the fields that the version before reads. A later version may leave them out."""
    return {**written, **_earlier_fields(written["relations"], written["updated_at"])}


def _relations(stored: Json) -> Iterator[Json]:
    if part := stored.get("absorbed"):
        yield {"kind": RelationKind.PART_OF, **part, "incident_id": part["leader"], "reasons": _listed(part["reason"])}
    if parent := stored.get("suggested_parent"):
        yield {"kind": RelationKind.MAY_BE_PART_OF, **parent, "reasons": _listed(parent["reason"])}
    for incident_id in stored.get("apart_from", ()):
        yield {"kind": RelationKind.APART_FROM, "incident_id": incident_id}
    if incident_id := stored.get("duplicate_of"):
        yield {"kind": RelationKind.DUPLICATE_OF, "incident_id": incident_id}
    if duplicate := stored.get("suggested_duplicate"):
        yield {"kind": RelationKind.MAY_DUPLICATE, **duplicate, "reasons": duplicate["evidence"]}


def _listed(reason: str) -> list[str]:
    return [reason] if reason else []


def _earlier_fields(relations: Sequence[Json], updated_at: str) -> Json:
    first = {each["kind"]: each for each in reversed(relations)}
    part, parent = first.get(RelationKind.PART_OF), first.get(RelationKind.MAY_BE_PART_OF)
    original, duplicate = first.get(RelationKind.DUPLICATE_OF), first.get(RelationKind.MAY_DUPLICATE)
    return {
        "absorbed": part
        and _only(part, "person", "provisional")
        | {"leader": part["incident_id"], "reason": _joined(part), "at": part["at"] or updated_at},
        "suggested_parent": parent and _only(parent, "incident_id", "title") | {"reason": _joined(parent)},
        "apart_from": [each["incident_id"] for each in relations if each["kind"] == RelationKind.APART_FROM],
        "duplicate_of": original["incident_id"] if original else "",
        "suggested_duplicate": duplicate
        and _only(duplicate, "incident_id", "title", "badge", "prediction_id") | {"evidence": duplicate["reasons"]},
    }


def _only(relation: Json, *names: str) -> dict[str, Any]:
    return {name: relation[name] for name in names}


def _joined(relation: Json) -> str:
    return "; ".join(relation["reasons"])
