"""A settled case of the past, that a claim about a present one can be judged by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from core.model.incident import PastIncident


@dataclass(frozen=True, slots=True)
class Reference:
    """`id` is the document's or incident's; `text` says what happened and how it ended. Untrusted."""

    id: str
    text: str
    settled_at: datetime | None = None


def settled_case(incident: PastIncident) -> Reference:
    """A past incident as a reference: what happened, whose it was, why, and what ended it."""
    parts = (
        ("", f"{incident.title}\n{incident.description}"),
        ("Service: ", incident.service),
        ("Owner: ", incident.owner),
        ("Root cause: ", incident.root_cause),
        ("Fix: ", incident.fix),
    )
    text = "\n".join(f"{label}{said}" for label, said in parts if said.strip())
    return Reference(incident.id, text, incident.resolved_at or incident.started_at)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim to be judged: a conclusion (answer, owner or cause) about a situation (a question or an incident)."""

    id: str
    situation: str
    conclusion: str
    made_at: datetime


def admissible(references: Iterable[Reference], claim: Claim) -> list[Reference]:
    """The references that may judge a claim, in order: neither the case itself nor one settled after it was made."""
    return [
        reference
        for reference in references
        if reference.id != claim.id and (reference.settled_at is None or reference.settled_at < claim.made_at)
    ]
