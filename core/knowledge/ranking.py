"""Passages ranked for a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from core.model.document import DocumentKind, Passage
from core.ports import Hit

# A page says how things are done; a thread what was said once, an incident what happened once.
KIND_PRIOR = {DocumentKind.PAGE: 1.0, DocumentKind.THREAD: 0.85, DocumentKind.INCIDENT: 0.8}

STALE_PRIOR = 0.95  # of the oldest candidate; the newest has 1: of two pages that say the same the newer is right


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A retrieved passage: `score` in [0, 1] is relative to this query and orders the passages.

    `lexical` (BM25) and `dense` (cosine) can be compared between queries; 0 where a search did not return the passage.
    """

    passage: Passage
    lexical: float
    dense: float
    score: float


def fused(lexical: Sequence[Hit], dense: Sequence[Hit], dense_share: float) -> dict[str, tuple[float, float, float]]:
    """Return the fused, lexical and dense score of each hit by passage id, best first.

    `dense_share` in [0, 1] is the dense score's share of the fused one. Each score counts as a share of the best of its
    list. Scores are fused, not ranks: a search that is sure by a wide margin should outvote one that is not.
    """
    lexical_scores = {hit.passage_id: hit.score for hit in lexical}
    dense_scores = {hit.passage_id: max(hit.score, 0.0) for hit in dense}
    best_lexical, best_dense = max(lexical_scores.values(), default=0.0), max(dense_scores.values(), default=0.0)
    rows = {
        key: (
            (1 - dense_share) * lexical_scores.get(key, 0.0) / (best_lexical or 1.0)
            + dense_share * dense_scores.get(key, 0.0) / (best_dense or 1.0),
            lexical_scores.get(key, 0.0),
            dense_scores.get(key, 0.0),
        )
        for key in lexical_scores | dense_scores
    }
    return dict(sorted(rows.items(), key=lambda row: (-row[1][0], row[0])))


def ranked(passages: Sequence[Passage], scores: Mapping[str, tuple[float, float, float]]) -> list[RankedPassage]:
    """Return passages with their scores, see `fused`, less for old ones and for what happened once; best first."""
    freshness = _freshness(passages)
    found = [
        RankedPassage(
            passage,
            scores[passage.id][1],
            scores[passage.id][2],
            scores[passage.id][0] * KIND_PRIOR[passage.kind] * freshness[passage.id],
        )
        for passage in passages
    ]
    return sorted(found, key=lambda each: (-each.score, each.passage.id))


def _freshness(passages: Sequence[Passage]) -> dict[str, float]:
    """From STALE_PRIOR for the oldest passage to 1 for the newest, by time; undated ones lie in the middle."""
    dates = [passage.updated_at for passage in passages if passage.updated_at]
    oldest, newest = min(dates, default=None), max(dates, default=None)
    span = (newest - oldest).total_seconds() if newest and oldest else 0.0

    def share(at: datetime | None) -> float:
        return (at - oldest).total_seconds() / span if span and oldest and at else 0.5

    return {passage.id: STALE_PRIOR + (1 - STALE_PRIOR) * share(passage.updated_at) for passage in passages}
