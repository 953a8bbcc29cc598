"""COE and RCE of an answer, computed from retrieval instead of asked of a model."""

from __future__ import annotations

from collections.abc import Sequence

from core.confidence.prediction import Evaluation
from core.knowledge.chain import EvidenceChain
from core.knowledge.ranking import RankedPassage

VERSION = "answer-evidence-1"  # of the formulas below: stored with every prediction

AGREEMENT_DEPTH = 5  # best passages of each retriever that are compared


def evaluate_answer(ranked: Sequence[RankedPassage], chain: EvidenceChain, answered: float) -> Evaluation:
    """The two measures of LM-PACE from the evidence itself, both in [0, 1].

    `coe` = how far the references can decide: ½ · best coverage of the question's terms by one passage
    + ¼ · agreement of both retrievers on the best passages + ¼ · support of the winning family.
    `rce` = how far they support this answer: `answered`, the share of the question's terms that its sentences hold.
    """
    if not ranked or not answered:
        return Evaluation(0.0, 0.0)
    coverage = max(found.coverage for found in chain.passages[:3])
    coe = 0.5 * coverage + 0.25 * agreement(ranked) + 0.25 * chain.support
    return Evaluation(coe, answered)


def agreement(ranked: Sequence[RankedPassage]) -> float:
    """The share of each retriever's best documents that the other one has among its best too, in [0, 1]."""
    lexical = _best([(found.lexical, found) for found in ranked])
    dense = _best([(found.dense, found) for found in ranked])
    return len(lexical & dense) / max(1, min(len(lexical), len(dense)))


def _best(scored: Sequence[tuple[float, RankedPassage]]) -> set[str]:
    ordered = sorted((item for item in scored if item[0] > 0), key=lambda item: -item[0])
    return {found.passage.document_id for _, found in ordered[:AGREEMENT_DEPTH]}
