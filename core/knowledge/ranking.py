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
    Closeness,
)
from core.knowledge.windows import WindowedPassage
from core.ports import ScoredPassage

# A page says how things are done; a thread what was said once, an incident what happened once.
KIND_PRIOR = {DocumentKind.PAGE: 1.0, DocumentKind.THREAD: 0.85, DocumentKind.INCIDENT: 0.8}

# A question is not the likelier to be about a family the more passages that has: of two passages that match as well, the
# one of the smaller family is meant. Chosen on sentences removed from runbooks and from manuals, and asked of both.
FAMILY_WEIGHT = 0.2  # of the logarithm of how much larger a family is than the smallest among the candidates
SMALL_FAMILY = 30  # passages up to which families count as equally large

STALE_PRIOR = 0.95  # of the oldest candidate; the newest has 1: of two pages that say the same the newer is right


@dataclass(frozen=True, slots=True)
class FusedPassage:
    """`lexical` (BM25) and `dense` (cosine) are as retrieved, 0 where a retriever did not return the passage.

    `fused` in [0, 1] is their weighted mean after min-max normalisation within this query.
    """

    passage: Passage
    windows: WindowedPassage
    lexical: float
    dense: float
    fused: float


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A fused passage after the rerank: `score` in [0, 1] is relative to this query and orders the passages.

    The others can be compared between queries. `dense` is the cosine of the dense vectors. `coverage` in [0, 1] is
    the share of the query's term weight (idf) that the passage or its title holds; `focus` in [0, 1] how far its best
    window comes up to a perfect match.
    """

    passage: Passage
    lexical: float
    dense: float
    fused: float
    score: float
    coverage: float
    focus: float


def fused(lexical: Sequence[ScoredPassage], dense: Sequence[ScoredPassage], dense_share: float) -> list[FusedPassage]:
    """The passages of both lists, best first. `dense_share` in [0, 1] is the dense score's share of the fused one.

    Scores are fused, not ranks: a retriever that is sure by a wide margin should outvote one that is not.
    """
    retrieved = {scored.passage.id: scored for scored in (*lexical, *dense)}
    lexical_scores = {scored.passage.id: scored.score for scored in lexical}
    dense_scores = {scored.passage.id: scored.score for scored in dense}
    lexical_shares, dense_shares = _normalised(lexical_scores), _normalised(dense_scores)
    rows = [
        FusedPassage(
            scored.passage,
            scored.windows,
            lexical_scores.get(key, 0.0),
            dense_scores.get(key, 0.0),
            (1 - dense_share) * lexical_shares.get(key, 0.0) + dense_share * dense_shares.get(key, 0.0),
        )
        for key, scored in retrieved.items()
    ]
    return sorted(rows, key=lambda row: (-row.fused, row.passage.id))


def reranked(
    candidates: Sequence[tuple[FusedPassage, Closeness]], dense_weight: float, families: Mapping[str, int]
) -> list[RankedPassage]:
    """Candidates ordered by the retrievers' opinions and the closer look, best first.

    `dense_weight` is that of the dense score beside LEXICAL_WEIGHT and the others. `families` is the number of passages
    of each family; one that it lacks is small.
    """
    best_lexical = max((found.lexical for found, _ in candidates), default=0.0) or 1.0
    best_dense = max((found.dense for found, _ in candidates), default=0.0)
    best_window = max((close.window for _, close in candidates), default=0.0) or 1.0
    total = LEXICAL_WEIGHT + WINDOW_WEIGHT + dense_weight + PAIR_WEIGHT + ORDER_WEIGHT

    freshness = _freshness([found.passage for found, _ in candidates])
    handicap = _handicap({found.passage.family: families.get(found.passage.family, 0) for found, _ in candidates})

    def score(found: FusedPassage, close: Closeness) -> float:
        evidence = (
            LEXICAL_WEIGHT * found.lexical / best_lexical
            + WINDOW_WEIGHT * close.window / best_window
            + dense_weight * (max(found.dense, 0.0) / best_dense if best_dense > 0 else 0.0)
            + PAIR_WEIGHT * close.pairs
            + ORDER_WEIGHT * close.order
            - handicap[found.passage.family]
        )
        return KIND_PRIOR[found.passage.kind] * freshness[found.passage.id] * max(evidence, 0.0) / total

    ranked = [
        RankedPassage(
            found.passage,
            found.lexical,
            found.dense,
            found.fused,
            score(found, close),
            close.coverage,
            close.focus,
        )
        for found, close in candidates
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
