"""Relations of an incident to other incidents."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from core.model.badge import Badge
from core.model.conversation import PersonName


class RelationKind(StrEnum):
    """The kind of a relation. An incident has at most one of each but `APART_FROM`.

    - PART_OF: it was merged into the other one, is shown as a part of it and not investigated on its own.
    - MAY_BE_PART_OF: a suggestion; both are investigated until a person merges them.
    - APART_FROM: it was separated from the other one, and is not merged into it again by rules.
    - DUPLICATE_OF: a person confirmed that it duplicates the other one.
    - MAY_DUPLICATE: a suggestion that a person confirms or rejects; a confirmed one is kept beside `DUPLICATE_OF`.
    """

    PART_OF = "part of"
    MAY_BE_PART_OF = "may be part of"
    APART_FROM = "apart from"
    DUPLICATE_OF = "duplicate of"
    MAY_DUPLICATE = "may duplicate"


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of an incident to another one. All texts are untrusted.

    - `incident_id`, `title`: those of the other one; the title may be empty.
    - `reasons`: in words.
    - `at`: when it was merged; None unless it was. `person` merged it, empty if the rules of
      `core.incidents.grouping` did.
    - `provisional`: the part only arrived together with the other one. It is investigated, and leaves once another cause
      is found for it.
    - `badge` and `prediction_id` are those of a suggestion that people judge; None and empty otherwise.
    - `readers`: those of the other one, if this is a suggestion that names it; None otherwise.
    """

    kind: RelationKind
    incident_id: str
    title: str = ""
    reasons: tuple[str, ...] = ()
    at: datetime | None = None
    person: PersonName = ""
    provisional: bool = False
    badge: Badge | None = None
    prediction_id: str = ""
    readers: tuple[str, ...] | None = None

    @property
    def reason(self) -> str:
        """Return all reasons in one text; empty if there is none."""
        return "; ".join(self.reasons)

    def is_a(self, kind: RelationKind, incident_id: str = "") -> bool:
        """Return whether it is of a kind, and to this incident if one is given."""
        return self.kind is kind and incident_id in ("", self.incident_id)
