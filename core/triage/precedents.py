"""Past incidents that decided an owner: what caused them, what fixed them, and which had the cause that is found now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log

from core.knowledge.terms import terms
from core.model.incident import Explanation, Neighbour, PastIncident, SimilarIncident
from core.triage.managers import TriageEvidence, counted

SHOWN = 3  # precedents of one incident
SAME_CAUSE = 1 / 3  # share of the weight of a past cause's words that the present cause and its evidence must have


def precedents(
    evidence: TriageEvidence, owner: str | None, explanation: Explanation | None
) -> tuple[SimilarIncident, ...]:
    """Return the past incidents that a named owner's votes rest on, else the most similar ones; nearest first."""
    vote = evidence.votes.get(owner) if owner is not None else None
    decided = counted(vote, evidence.votes)[:SHOWN] if vote is not None else evidence.neighbours[:SHOWN]
    rarity = _rarity(evidence.neighbours)
    return tuple(
        SimilarIncident(
            id=past.id,
            title=past.title,
            owner=past.owner,
            root_cause=past.root_cause,
            fix=past.fix,
            similarity=neighbour.similarity,
            url=past.url,
            same_cause=_has_same_cause(past, owner, explanation, rarity),
        )
        for neighbour in decided
        for past in (neighbour.incident,)
    )


def _has_same_cause(
    past: PastIncident, owner: str | None, explanation: Explanation | None, rarity: Mapping[str, float]
) -> bool:
    """Return whether the present cause says what the past one said, of a service of the same team."""
    cause = explanation.cause if explanation is not None else None
    if cause is None or (past.owner != owner and past.service != cause.service):
        return False
    evidence = (text for each in cause.evidence for text in (each.source, each.quote))
    said = {term for text in (cause.cause, cause.service, *evidence) for term in terms(text)}
    weights = {term: rarity.get(term, 0.0) for term in set(terms(past.root_cause))}
    total = sum(weights.values())
    return total > 0 and sum(weights[term] for term in said & weights.keys()) >= SAME_CAUSE * total


def _rarity(neighbours: Sequence[Neighbour]) -> Mapping[str, float]:
    """Return each term of the causes of similar incidents with its weight: the fewer of them have it, the more."""
    counts = Counter(term for each in neighbours for term in set(terms(each.incident.root_cause)))
    return {term: log((1 + len(neighbours)) / count) for term, count in counts.items()}
