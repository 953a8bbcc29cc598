"""Duplicates: incidents that are another sign of one that is known already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import exp

from core.knowledge.terms import terms
from core.model.incident import Incident, IncidentState
from core.model.prediction import Evaluation
from core.rca.dependencies import callees
from core.rca.log_templates import masked
from core.triage.postings import Postings

VERSION = "duplicate-evidence-1"
RECENT = timedelta(hours=24)  # after it was over, in which an incident may still have a duplicate
TOGETHER = timedelta(minutes=30)  # between two beginnings, in which their closeness in time falls to 1/e
STEP = 0.6  # of the closeness of one service, for each call between two
TEXT_WEIGHT = 0.5  # of what makes two incidents one; the rest is where they are
SAME_TEMPLATE = 0.9  # similarity of two texts that differ in numbers alone, at least
ALIKE = 0.4  # similarity from which on texts speak for a duplicate
CLOSE = 0.3  # closeness in time from which on it speaks for a duplicate
MIN_SCORE = 0.5  # below which nothing is said
MIN_SIGNS = 2  # of text, place and time, that have to speak for it


@dataclass(frozen=True, slots=True)
class DuplicateCandidate:
    """An earlier incident. `similarity` of the texts, `place` and `time` say how close they are, each in [0, 1]."""

    incident: Incident
    similarity: float
    place: float
    time: float
    evidence: tuple[str, ...]

    @property
    def score(self) -> float:
        """Return how likely it is a duplicate, in [0, 1]; half of it is lost where they began at quite another time."""
        return (TEXT_WEIGHT * self.similarity + (1 - TEXT_WEIGHT) * self.place) * (1 + self.time) / 2

    @property
    def convinces(self) -> bool:
        signs = (self.similarity >= ALIKE) + (self.place > 0) + (self.time >= CLOSE)
        return self.score >= MIN_SCORE and signs >= MIN_SIGNS


def duplicate_candidates(
    incident: Incident, others: Sequence[Incident], dependencies: Mapping[str, tuple[str, ...]]
) -> list[DuplicateCandidate]:
    """Return the earlier incidents that are open or were over a short while before this one began, the likeliest first."""
    known = [other for other in others if _may_be_meant(incident, other)]
    if not known:
        return []
    similarity = Postings.of(Counter(terms(other.description)) for other in known).similarities(
        Counter(terms(incident.description))
    )
    found = [_compared(incident, other, float(similarity[row]), dependencies) for row, other in enumerate(known)]
    return sorted(found, key=lambda each: (-each.score, each.incident.opened_at, each.incident.id))


def evaluate_duplicate(incident: Incident, candidate: DuplicateCandidate, rivals: Sequence[float]) -> Evaluation:
    """Return as COE how much of text, place and time is known of both, and as RCE how far they agree, less for rivals.

    `rivals` are the scores of the other candidates.
    """
    other = candidate.incident
    known = (bool(terms(incident.description)), bool(incident.service and other.service), True)
    rival = max(rivals, default=0.0) / candidate.score if candidate.score else 1.0
    return Evaluation(sum(known) / len(known), candidate.score * (1 - 0.5 * min(1.0, rival)))


def _may_be_meant(incident: Incident, other: Incident) -> bool:
    """Return whether the other incident is shown for itself, and came before."""
    if other.id == incident.id or (other.opened_at, other.id) > (incident.opened_at, incident.id):
        return False
    if other.absorbed is not None or other.silenced is not None:
        return False
    over = other.resolved_at if other.state is IncidentState.RESOLVED else None
    return over is None or incident.started_at - over <= RECENT


def _compared(
    incident: Incident, other: Incident, similarity: float, dependencies: Mapping[str, tuple[str, ...]]
) -> DuplicateCandidate:
    if masked(other.title) == masked(incident.title):
        similarity = max(similarity, SAME_TEMPLATE)
    apart, nearer = _apart(incident.service, other.service, dependencies)
    place = STEP**apart if apart is not None else 0.0
    gap = _gap(incident.started_at, other)
    evidence = (
        *(("says the same, but for numbers",) if similarity >= SAME_TEMPLATE else ()),
        *((f"{similarity:.0%} of the words agree",) if ALIKE <= similarity < SAME_TEMPLATE else ()),
        *((_format_place(incident.service, other.service, apart, nearer),) if apart is not None else ()),
        _format_time(incident, other),
    )
    return DuplicateCandidate(other, similarity, place, exp(-gap / TOGETHER), evidence)


def _apart(one: str, other: str, dependencies: Mapping[str, tuple[str, ...]]) -> tuple[int | None, str]:
    """Return the number of calls between two services, and the one that calls; None if neither depends on the other."""
    if not one or not other:
        return None, ""
    if one == other:
        return 0, one
    for caller, callee in ((one, other), (other, one)):
        if (distance := callees(caller, dependencies).get(callee)) is not None:
            return distance, caller
    return None, ""


def _gap(began: datetime, other: Incident) -> timedelta:
    return abs(began - other.started_at)


def _format_place(service: str, other: str, apart: int, caller: str) -> str:
    if not apart:
        return f"the same service, {service}"
    callee = other if caller == service else service
    return f"{caller} depends on {callee}" + (f" over {apart} calls" if apart > 1 else "")


def _format_time(incident: Incident, other: Incident) -> str:
    minutes = round((incident.started_at - other.started_at).total_seconds() / 60)
    began = (
        "began at the same time"
        if not minutes
        else f"began {abs(minutes)} min {'after' if minutes > 0 else 'before'} it"
    )
    return f"{began}, which is {'still open' if other.state is IncidentState.OPEN else 'over'}"
