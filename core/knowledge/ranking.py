"""A passage as it is ranked for a query, with every partial score kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.knowledge.document import Passage
from core.ports import ScoredPassage

LEXICAL_SHARE = 0.6  # of the fused score; the rest is the dense retriever's


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """`lexical` (BM25) and `dense` (cosine) are as retrieved, 0 where a retriever did not return the passage.

    `fused` in [0, 1] is their weighted mean after min-max normalisation within this query; `score` orders the
    passages after the rerank. `coverage` in [0, 1] is the share of the query's term weight (idf) that the passage
    or its title holds.
    """

    passage: Passage
    lexical: float
    dense: float
    fused: float
    score: float
    coverage: float


def fused(
    lexical: Sequence[ScoredPassage], dense: Sequence[ScoredPassage], lexical_share: float = LEXICAL_SHARE
) -> list[tuple[Passage, float, float, float]]:
    """Passages of both lists with their lexical, dense and fused score, best first.

    Scores are fused, not ranks: a retriever that is sure by a wide margin should outvote one that is not.
    """
    passages = {scored.passage.id: scored.passage for scored in (*lexical, *dense)}
    lexical_scores = {scored.passage.id: scored.score for scored in lexical}
    dense_scores = {scored.passage.id: scored.score for scored in dense}
    lexical_shares, dense_shares = _normalised(lexical_scores), _normalised(dense_scores)
    rows = [
        (
            passage,
            lexical_scores.get(key, 0.0),
            dense_scores.get(key, 0.0),
            lexical_share * lexical_shares.get(key, 0.0) + (1 - lexical_share) * dense_shares.get(key, 0.0),
        )
        for key, passage in passages.items()
    ]
    return sorted(rows, key=lambda row: (-row[3], row[0].id))


def _normalised(scores: Mapping[str, float]) -> dict[str, float]:
    """Scores mapped to [0, 1], the worst one retrieved to 0. A single one, or equal ones, map to 1."""
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    return {key: (score - low) / (high - low) if high > low else 1.0 for key, score in scores.items()}
