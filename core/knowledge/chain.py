"""The evidence chain: one family of documents is chosen, and only its passages may be cited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.knowledge.ranking import RankedPassage

VOTERS = 20  # best passages that vote; a vote of few is decided by chance
SHARPNESS = 4  # power of the score in a vote: many weak passages must not outvote a strong one


@dataclass(frozen=True, slots=True)
class EvidenceChain:
    """The winning family's passages, best first, and its share of the support of all families, in [0, 1]."""

    family: str
    support: float
    passages: tuple[RankedPassage, ...]


def evidence_chain(ranked: Sequence[RankedPassage]) -> EvidenceChain | None:
    """The family with the largest rank-discounted support (Evidence-Chain RAG, Method). None without passages."""
    support: dict[str, float] = {}
    for rank, found in enumerate(ranked[:VOTERS], start=1):
        family = found.passage.family
        support[family] = support.get(family, 0.0) + found.score**SHARPNESS / rank
    total = sum(support.values())
    if not total:
        return None
    winner = max(support, key=lambda family: support[family])
    return EvidenceChain(
        winner, support[winner] / total, tuple(found for found in ranked if found.passage.family == winner)
    )
