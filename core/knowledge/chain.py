"""The evidence chain: one family of documents is chosen, and only its passages may be cited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.knowledge.ranking import RankedPassage

VOTERS = 20  # best passages that vote; a vote of few is decided by chance
SHARPNESS = 4  # power of the score in a vote: many weak passages must not outvote a strong one


@dataclass(frozen=True, slots=True)
class EvidenceChain:
    """The winning family's passages, best first.

    `support` in [0, 1] is its share of the support of all families, `lead` in [0, 1] by how much that share exceeds
    the second family's.
    """

    family: str
    support: float
    passages: tuple[RankedPassage, ...]
    lead: float = 1.0


def evidence_chain(ranked: Sequence[RankedPassage]) -> EvidenceChain | None:
    """The family with the largest rank-discounted support (Evidence-Chain RAG, Method). None without passages."""
    support: dict[str, float] = {}
    for rank, found in enumerate(ranked[:VOTERS], start=1):
        family = found.passage.family
        support[family] = support.get(family, 0.0) + found.score**SHARPNESS / rank
    return chain_of(ranked, support)


def chain_of(ranked: Sequence[RankedPassage], support: Mapping[str, float]) -> EvidenceChain | None:
    """The chain of the family with the largest `support`, which is 0 or more. None if none has any."""
    total = sum(support.values())
    if not total:
        return None
    winner = max(support, key=lambda family: support[family])
    second = max((value for family, value in support.items() if family != winner), default=0.0)
    return EvidenceChain(
        winner,
        support[winner] / total,
        tuple(found for found in ranked if found.passage.family == winner),
        (support[winner] - second) / total,
    )


def evidence_chains(parts: Sequence[Sequence[RankedPassage]]) -> tuple[EvidenceChain, ...]:
    """The typed chain: one chain for each part of a question, given what was retrieved for it, in their order.

    Evidence-Chain RAG (Limitations) asks for it where a question spans several families: every segment of the answer
    cites within its own chain. Empty if a part has no chain, or if all parts have the same family: then there is one
    chain, that of the whole question.
    """
    chains = [chain for ranked in parts if (chain := evidence_chain(ranked))]
    several = len(chains) == len(parts) and len({chain.family for chain in chains}) > 1
    return tuple(chains) if several else ()
