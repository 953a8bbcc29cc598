"""References: settled cases by which a claim is judged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from core.model.incident import PastIncident


@dataclass(frozen=True, slots=True)
class Reference:
    """A settled case.

    `id` is the document's or incident's id; `text` says what happened and how it ended. Untrusted.
    """

    id: str
    text: str
    settled_at: datetime | None = None


def settled_case(incident: PastIncident) -> Reference:
    """Return a past incident as a reference: what happened, its owner, cause and fix."""
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
    """A conclusion (answer, owner or cause) about a situation (question or incident), to be judged."""

    id: str
    situation: str
    conclusion: str
    made_at: datetime


def admissible(references: Iterable[Reference], claim: Claim) -> list[Reference]:
    """Return the references that may judge a claim, in order: not the case itself, nor cases settled after the claim."""
    return [
        reference
        for reference in references
        if reference.id != claim.id and (reference.settled_at is None or reference.settled_at < claim.made_at)
    ]
