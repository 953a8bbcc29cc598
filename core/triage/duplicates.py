"""Find duplicates: incidents that are another symptom of a known one."""

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
RECENT = timedelta(hours=24)  # after its end, within which an incident may still have a duplicate
TOGETHER = timedelta(minutes=30)  # between two starts, at which their closeness in time falls to 1/e
STEP = 0.6  # factor of the closeness, for each call between two services
TEXT_WEIGHT = 0.5  # of the score; the rest is the place
SAME_TEMPLATE = 0.9  # minimum similarity of two texts that differ only in numbers
ALIKE = 0.4  # similarity from which texts are a sign of a duplicate
CLOSE = 0.3  # closeness in time from which it is a sign of a duplicate
MIN_SCORE = 0.5  # below this, nothing is suggested
MIN_SIGNS = 2  # required of the three: text, place and time


@dataclass(frozen=True, slots=True)
class DuplicateCandidate:
    """An earlier incident. `similarity` is that of the texts, `place` and `time` are closenesses, each in [0, 1]."""

    incident: Incident
    similarity: float
    place: float
    time: float
    evidence: tuple[str, ...]

    @property
    def score(self) -> float:
        """Return the score of a duplicate, in [0, 1]. It is halved if they began at very different times."""
        return (TEXT_WEIGHT * self.similarity + (1 - TEXT_WEIGHT) * self.place) * (1 + self.time) / 2

    @property
    def convinces(self) -> bool:
        signs = (self.similarity >= ALIKE) + (self.place > 0) + (self.time >= CLOSE)
        return self.score >= MIN_SCORE and signs >= MIN_SIGNS


def duplicate_candidates(
    incident: Incident, others: Sequence[Incident], dependencies: Mapping[str, tuple[str, ...]]
) -> list[DuplicateCandidate]:
    """Return the earlier incidents that are open or ended within RECENT before this one began, the likeliest first."""
    earlier = [other for other in others if _may_be_meant(incident, other)]
    if not earlier:
        return []
    similarity = Postings.of(Counter(terms(other.description)) for other in earlier).similarities(
        Counter(terms(incident.description))
    )
    candidates = [_compared(incident, other, float(similarity[row]), dependencies) for row, other in enumerate(earlier)]
    return sorted(candidates, key=lambda each: (-each.score, each.incident.opened_at, each.incident.id))


def evaluate_duplicate(incident: Incident, candidate: DuplicateCandidate, rivals: Sequence[float]) -> Evaluation:
    """Return the evaluation of a duplicate.

    COE is the known share of text, service and time; RCE is the candidate's score, reduced by the best score of
    `rivals`.
    """
    other = candidate.incident
    available = (bool(terms(incident.description)), bool(incident.service and other.service), True)
    rival = max(rivals, default=0.0) / candidate.score if candidate.score else 1.0
    return Evaluation(sum(available) / len(available), candidate.score * (1 - 0.5 * min(1.0, rival)))


def _may_be_meant(incident: Incident, other: Incident) -> bool:
    """Return whether the other incident is shown on its own, and came before."""
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
        *(("the same text, apart from numbers",) if similarity >= SAME_TEMPLATE else ()),
        *((f"the texts are {similarity:.0%} similar",) if ALIKE <= similarity < SAME_TEMPLATE else ()),
        *((_format_place(incident.service, other.service, apart, nearer),) if apart is not None else ()),
        _format_time(incident, other),
    )
    return DuplicateCandidate(other, similarity, place, exp(-gap / TOGETHER), evidence)


def _apart(one: str, other: str, dependencies: Mapping[str, tuple[str, ...]]) -> tuple[int | None, str]:
    """Return the number of calls between two services, and the caller; None if neither depends on the other."""
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
