"""Passages ranked for a query, with every partial score kept."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.knowledge.document import DocumentKind, Passage
from core.knowledge.rerank import (
    LEXICAL_WEIGHT,
    ORDER_WEIGHT,
    PAIR_WEIGHT,
    WINDOW_WEIGHT,
    WORDING_WEIGHT,
    Closeness,
)
from core.ports import Hit

# A page says how things are done; a thread what was said once, an incident what happened once.
KIND_PRIOR = {DocumentKind.PAGE: 1.0, DocumentKind.THREAD: 0.85, DocumentKind.INCIDENT: 0.8}

# A question is not the likelier to be about a family the more passages that has: of two passages that match as well, the
# one of the smaller family is meant. Chosen on sentences removed from runbooks and from manuals, and asked of both.
FAMILY_WEIGHT = 0.2  # of the logarithm of how much larger a family is than the smallest among the candidates
SMALL_FAMILY = 30  # passages up to which families count as equally large

STALE_PRIOR = 0.95  # of the oldest candidate; the newest has 1: of two pages that say the same the newer is right


@dataclass(frozen=True, slots=True)
class FusedHit:
    """`lexical` (BM25) and `dense` (cosine) are as retrieved, 0 where a retriever did not return the passage.

    `fused` in [0, 1] is their weighted mean after min-max normalisation within this query.
    """

    passage_id: str
    lexical: float
    dense: float
    fused: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that was found, and what a closer look at it says. `likeness` in [0, 1] is that of the wording."""

    passage: Passage
    hit: FusedHit
    closeness: Closeness
    likeness: float


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A candidate after the rerank: `score` in [0, 1] is relative to this query and orders the passages.

    The others can be compared between queries. `dense` is the cosine of the dense vectors. `coverage` in [0, 1] is
    the share of the query's term weight that the passage or its title holds; `focus` in [0, 1] how far its best
    window comes up to a perfect match. `withheld` is what the score lost because of the passage's family.
    """

    passage: Passage
    lexical: float
    dense: float
    fused: float
    score: float
    coverage: float
    focus: float
    withheld: float = 0.0


def fused(lexical: Sequence[Hit], dense: Sequence[Hit], dense_share: float) -> list[FusedHit]:
    """The hits of both lists, best first. `dense_share` in [0, 1] is the dense score's share of the fused one.

    Scores are fused, not ranks: a retriever that is sure by a wide margin should outvote one that is not.
    """
    lexical_scores = {hit.passage_id: hit.score for hit in lexical}
    dense_scores = {hit.passage_id: hit.score for hit in dense}
    lexical_shares, dense_shares = _normalised(lexical_scores), _normalised(dense_scores)
    rows = [
        FusedHit(
            key,
            lexical_scores.get(key, 0.0),
            dense_scores.get(key, 0.0),
            (1 - dense_share) * lexical_shares.get(key, 0.0) + dense_share * dense_shares.get(key, 0.0),
        )
        for key in lexical_scores | dense_scores
    ]
    return sorted(rows, key=lambda row: (-row.fused, row.passage_id))


def reranked(candidates: Sequence[Candidate], dense_weight: float, families: Mapping[str, int]) -> list[RankedPassage]:
    """Candidates ordered by the retrievers' opinions and the closer look, best first.

    `dense_weight` is that of the dense score beside LEXICAL_WEIGHT and the others. `families` is the number of passages
    of each family; one that it lacks is small.
    """
    best_lexical = max((found.hit.lexical for found in candidates), default=0.0) or 1.0
    best_dense = max((found.hit.dense for found in candidates), default=0.0)
    best_window = max((found.closeness.window for found in candidates), default=0.0) or 1.0
    best_likeness = max((found.likeness for found in candidates), default=0.0) or 1.0
    total = LEXICAL_WEIGHT + WINDOW_WEIGHT + dense_weight + PAIR_WEIGHT + ORDER_WEIGHT + WORDING_WEIGHT

    freshness = _freshness([found.passage for found in candidates])
    handicap = _handicap({found.passage.family: families.get(found.passage.family, 0) for found in candidates})

    def score(found: Candidate) -> float:
        hit, close = found.hit, found.closeness
        evidence = (
            LEXICAL_WEIGHT * hit.lexical / best_lexical
            + WINDOW_WEIGHT * close.window / best_window
            + dense_weight * (max(hit.dense, 0.0) / best_dense if best_dense > 0 else 0.0)
            + PAIR_WEIGHT * close.pairs
            + ORDER_WEIGHT * close.order
            + WORDING_WEIGHT * found.likeness / best_likeness
            - handicap[found.passage.family]
        )
        return KIND_PRIOR[found.passage.kind] * freshness[found.passage.id] * max(evidence, 0.0) / total

    ranked = [
        RankedPassage(
            found.passage,
            found.hit.lexical,
            found.hit.dense,
            found.hit.fused,
            score(found),
            found.closeness.coverage,
            found.closeness.focus,
        )
        for found in candidates
    ]
    return sorted(ranked, key=lambda found: (-found.score, found.passage.id))


def _normalised(scores: Mapping[str, float]) -> dict[str, float]:
    """Scores mapped to [0, 1], the worst one retrieved to 0. A single one, or equal ones, map to 1."""
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    return {key: (score - low) / (high - low) if high > low else 1.0 for key, score in scores.items()}


def _handicap(sizes: Mapping[str, int]) -> dict[str, float]:
    """What a passage of each family must make up for; 0 for the smallest."""
    logarithms = {family: math.log(max(size, SMALL_FAMILY)) for family, size in sizes.items()}
    smallest = min(logarithms.values(), default=0.0)
    return {family: FAMILY_WEIGHT * (size - smallest) for family, size in logarithms.items()}


def _freshness(passages: Sequence[Passage]) -> dict[str, float]:
    """From STALE_PRIOR for the oldest passage to 1 for the newest, by time; undated ones lie in the middle."""
    dates = [passage.updated_at for passage in passages if passage.updated_at]
    oldest, newest = min(dates, default=None), max(dates, default=None)
    span = (newest - oldest).total_seconds() if newest and oldest else 0.0

    def share(passage: Passage) -> float:
        if not (span and oldest and passage.updated_at):
            return 0.5
        return (passage.updated_at - oldest).total_seconds() / span

    return {passage.id: STALE_PRIOR + (1 - STALE_PRIOR) * share(passage) for passage in passages}
