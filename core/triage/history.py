"""Past incidents, searched by their text, and the known incident that a new one may duplicate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import exp

import numpy as np

from core.knowledge.terms import terms
from core.model.badge import Evaluation
from core.model.conversation import Audience, Channel, current_readers
from core.model.explanation import Neighbour, PastIncident
from core.model.incident import Incident, IncidentState
from core.rca.dependencies import callees
from core.rca.log_lines import masked
from core.triage.owner_model import Postings

KEPT_VIEWS = 8  # histories kept for audiences that may not read everything; each takes as much memory as the whole


class IncidentHistory:
    """Past incidents as TF-IDF vectors (Triangle, Algorithm 1, step 1), kept as one posting list per term.

    Built once: about 1 ms per 10 incidents. A search reads only the posting lists of its own terms.
    """

    def __init__(self, incidents: Sequence[PastIncident]) -> None:
        self.incidents = tuple(incidents)
        self._readers = frozenset(r for each in self.incidents for r in (each.readers, *sum(each.veiled.values(), ())))
        self.reader_names = frozenset(reader for readers in self._readers for reader in readers)
        self._readable: dict[frozenset[frozenset[str]], IncidentHistory] = {}
        self.owners = frozenset(incident.owner for incident in self.incidents)
        # By the text known at its opening, because the later cause and fix would blur the similarity.
        texts = (f"{each.title}\n{each.description}\n{each.service}" for each in self.incidents)
        self._postings = Postings.of(Counter(terms(text)) for text in texts)

    def readable_by(self, audience: Audience, channels: Sequence[Channel] = ()) -> IncidentHistory:
        """Return the history without the incidents and fields that this audience may not read; cached by access.

        `channels` are the channels as they are now.
        """
        hidden = frozenset(each for each in self._readers if not audience.may_read(current_readers(each, channels)))
        if not hidden:
            return self
        if hidden not in self._readable:
            kept = [incident.without(hidden) for incident in self.incidents if incident.readers not in hidden]
            self._readable = {hidden: IncidentHistory(kept), **dict(list(self._readable.items())[: KEPT_VIEWS - 1])}
        return self._readable[hidden]

    def similar(self, text: str, limit: int, without: frozenset[str] = frozenset()) -> list[Neighbour]:
        """Return the `limit` incidents most similar to `text`, best first, except those with an id in `without`."""
        scores = self._postings.similarities(Counter(terms(text)))
        wanted = min(limit + len(without), len(scores))
        if not wanted:
            return []
        best = np.argpartition(-scores, wanted - 1)[:wanted]
        ranked: list[int] = best[np.lexsort((best, -scores[best]))].tolist()
        neighbours = [Neighbour(self.incidents[row], float(scores[row])) for row in ranked if scores[row] > 0]
        return [neighbour for neighbour in neighbours if neighbour.incident.id not in without][:limit]


DUPLICATE_VERSION = "duplicate-evidence-1"
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
    available = (bool(terms(incident.description)), bool(incident.service and candidate.incident.service), True)
    rival = max(rivals, default=0.0) / candidate.score if candidate.score else 1.0
    return Evaluation(sum(available) / len(available), candidate.score * (1 - 0.5 * min(1.0, rival)))


def _may_be_meant(incident: Incident, other: Incident) -> bool:
    """Return whether the other incident is shown on its own, and came before."""
    if other.id == incident.id or (other.opened_at, other.id) > (incident.opened_at, incident.id):
        return False
    if other.part_of is not None or other.silenced is not None:
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
    gap = abs(incident.started_at - other.started_at)
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
    return f"{began}, which is {'still open' if other.state is IncidentState.OPEN else other.state_text('over')}"
