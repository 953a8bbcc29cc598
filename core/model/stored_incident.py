"""The JSON of an incident, which replicas of this version and of the one before read and write at the same time.

Those of the version before know five fields in place of `relations`. They ignore `relations` and do not write it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.model.relation import RelationKind

Json = Mapping[str, Any]


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
