"""Passages ranked for a query, with every partial score kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.knowledge.document import Passage
from core.knowledge.rerank import (
    DENSE_WEIGHT,
    LEXICAL_WEIGHT,
    ORDER_WEIGHT,
    PAIR_WEIGHT,
    WINDOW_WEIGHT,
    Closeness,
)
from core.ports import ScoredPassage

LEXICAL_SHARE = 0.6  # of the fused score; the rest is the dense retriever's


@dataclass(frozen=True, slots=True)
class FusedPassage:
    """`lexical` (BM25) and `dense` (cosine) are as retrieved, 0 where a retriever did not return the passage.

    `fused` in [0, 1] is their weighted mean after min-max normalisation within this query.
    """

    passage: Passage
    lexical: float
    dense: float
    fused: float


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A fused passage after the rerank: `score` in [0, 1] is relative to this query and orders the passages.

    `coverage` in [0, 1] is the share of the query's term weight (idf) that the passage or its title holds: unlike
    `score`, it can be compared between queries.
    """

    passage: Passage
    lexical: float
    dense: float
    fused: float
    score: float
    coverage: float


def fused(
    lexical: Sequence[ScoredPassage], dense: Sequence[ScoredPassage], lexical_share: float = LEXICAL_SHARE
) -> list[FusedPassage]:
    """The passages of both lists, best first.

    Scores are fused, not ranks: a retriever that is sure by a wide margin should outvote one that is not.
    """
    passages = {scored.passage.id: scored.passage for scored in (*lexical, *dense)}
    lexical_scores = {scored.passage.id: scored.score for scored in lexical}
    dense_scores = {scored.passage.id: scored.score for scored in dense}
    lexical_shares, dense_shares = _normalised(lexical_scores), _normalised(dense_scores)
    rows = [
        FusedPassage(
            passage,
            lexical_scores.get(key, 0.0),
            dense_scores.get(key, 0.0),
            lexical_share * lexical_shares.get(key, 0.0) + (1 - lexical_share) * dense_shares.get(key, 0.0),
        )
        for key, passage in passages.items()
    ]
    return sorted(rows, key=lambda row: (-row.fused, row.passage.id))


def reranked(candidates: Sequence[tuple[FusedPassage, Closeness]], dense_fidelity: float) -> list[RankedPassage]:
    """Candidates ordered by the retrievers' opinions and the closer look, best first.

    `dense_fidelity` in [0, 1] says how much of the corpus the dense vectors can tell apart.
    """
    dense_weight = DENSE_WEIGHT * dense_fidelity
    best_lexical = max((found.lexical for found, _ in candidates), default=0.0) or 1.0
    best_dense = max((found.dense for found, _ in candidates), default=0.0)
    best_window = max((close.window for _, close in candidates), default=0.0) or 1.0
    total = LEXICAL_WEIGHT + WINDOW_WEIGHT + dense_weight + PAIR_WEIGHT + ORDER_WEIGHT

    def score(found: FusedPassage, close: Closeness) -> float:
        return (
            LEXICAL_WEIGHT * found.lexical / best_lexical
            + WINDOW_WEIGHT * close.window / best_window
            + dense_weight * (max(found.dense, 0.0) / best_dense if best_dense > 0 else 0.0)
            + PAIR_WEIGHT * close.pairs
            + ORDER_WEIGHT * close.order
        ) / total

    ranked = [
        RankedPassage(found.passage, found.lexical, found.dense, found.fused, score(found, close), close.coverage)
        for found, close in candidates
    ]
    return sorted(ranked, key=lambda found: (-found.score, found.passage.id))


def _normalised(scores: Mapping[str, float]) -> dict[str, float]:
    """Scores mapped to [0, 1], the worst one retrieved to 0. A single one, or equal ones, map to 1."""
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    return {key: (score - low) / (high - low) if high > low else 1.0 for key, score in scores.items()}
