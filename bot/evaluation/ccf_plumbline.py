"""Plumbline on the silver corpus: a family model of it, and the evidence chain of the product over its families."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from bot.evaluation.ccf_corpus import Case, Chunk
from bot.evaluation.ccf_family_model import FamilyModel
from bot.evaluation.ccf_lexicon import Keywords
from bot.evaluation.ccf_reply import CITED, Reply
from bot.evaluation.lexicon import Lexicon
from core.confidence.calibrator import Calibrator, Label, fit
from core.confidence.prediction import Evaluation
from core.knowledge.chain import EvidenceChain, chain_of
from core.knowledge.document import Document
from core.knowledge.passages import passages_of
from core.knowledge.ranking import RankedPassage

KEYWORD_SHARES = (0.0, 0.25, 0.5, 0.75)  # what keywords may count for beside the model; chosen in the inner loop
SELECTED = 0.78  # share of its own questions that the selective threshold answers: 0.70 is asked for, the rest is room for chance

FITTED_AT = datetime(2000, 1, 1, tzinfo=UTC)  # no part of any figure

Shares = NDArray[np.float64]


class Plumbline:
    """Fitted to a corpus without the tested question.

    Both hyper-parameters are chosen by leaving out each question of this corpus in turn (the inner loop): what keywords
    count for, by the questions answered right, and the lead that the selective method asks for. The n-grams and penalties
    of the family model are averaged over, not chosen.
    """

    def __init__(self, cases: Sequence[Case], chunks: Sequence[Chunk], lexicon: Lexicon) -> None:
        """`chunks` are the silver corpus of `cases`. Of a profile only the name is read: its tasks stand elsewhere."""
        self._chunks = {chunk.id: chunk for chunk in chunks}
        self._passages = [
            passages_of(Document(chunk.id, "ccf", chunk.family, chunk.family, chunk.question or chunk.family))[0]
            for chunk in chunks
        ]
        self._keywords = Keywords.chosen(lexicon, cases)
        self._model = FamilyModel.fitted(
            [passage.text for passage in self._passages], [passage.family for passage in self._passages]
        )
        held_out = self._model.held_out[[not chunk.profile for chunk in chunks]]
        hints = _held_out_hints(cases, lexicon, self._model.families) if lexicon is not Lexicon.NONE else held_out
        truth = [self._model.families.index(case.family) for case in cases]
        mixtures = {share: _mixed(held_out, hints, share) for share in KEYWORD_SHARES}
        self.keyword_share = max(KEYWORD_SHARES, key=lambda share: int((mixtures[share].argmax(axis=1) == truth).sum()))
        chosen = mixtures[self.keyword_share]
        ordered = np.sort(chosen, axis=1)
        leads = ordered[:, -1] - ordered[:, -2]
        self.threshold = float(np.quantile(leads, 1 - SELECTED))
        self._calibrator = _calibrated(leads, ordered[:, -1], chosen.argmax(axis=1) == truth)

    def reply(self, question: str) -> Reply:
        """Answer from the chain of the likeliest family."""
        return self._answered(*self._ranked(question))

    def selective_reply(self, question: str) -> Reply:
        """The same, but nothing where no family leads far enough."""
        ranking, chain = self._ranked(question)
        return self._answered(ranking, chain) if chain.lead >= self.threshold else Reply(ranking, "", ())

    def _ranked(self, question: str) -> tuple[tuple[Chunk, ...], EvidenceChain]:
        evidence, families = self._model.evidence(question), self._model.families
        shares = _mixed(evidence.shares, self._keywords.shares(question, families), self.keyword_share)
        support: dict[str, float] = dict(zip(families, shares.tolist(), strict=True))
        cosines: list[float] = evidence.similarities.tolist()
        ranked = [
            RankedPassage(
                passage=passage,
                lexical=0.0,
                dense=cosine,
                fused=cosine,
                score=cosine * support[passage.family],
                coverage=0.0,
                focus=0.0,
            )
            for passage, cosine in zip(self._passages, cosines, strict=True)
        ]
        ranked.sort(key=lambda found: (-found.score, -found.dense))
        chain = chain_of(ranked, support)
        assert chain is not None  # the shares sum to 1
        return tuple(self._chunks[found.passage.document_id] for found in ranked), chain

    def _answered(self, ranking: tuple[Chunk, ...], chain: EvidenceChain) -> Reply:
        cited = tuple(self._chunks[found.passage.document_id] for found in chain.passages[:CITED])
        probability = self._calibrator.probability(_evaluation(chain.lead, chain.support)) if self._calibrator else None
        return Reply(ranking, chain.family, cited, probability)


def _calibrated(leads: Shares, supports: Shares, correct: NDArray[np.bool_]) -> Calibrator | None:
    """The product's calibrator, fitted to the questions of the inner loop; None if they are too few."""
    rows = zip(leads.tolist(), supports.tolist(), correct.tolist(), strict=True)
    return fit([Label(_evaluation(lead, support), right) for lead, support, right in rows], "eval", FITTED_AT)


def _evaluation(lead: float, support: float) -> Evaluation:
    """How far the families are apart, and how far the evidence is on the side of the chosen one."""
    return Evaluation(coe=min(max(lead, 0.0), 1.0), rce=min(max(support, 0.0), 1.0))


def _held_out_hints(cases: Sequence[Case], lexicon: Lexicon, families: Sequence[str]) -> Shares:
    """What the keywords say of each question when they come from the others."""
    return np.array(
        [
            Keywords.chosen(lexicon, [*cases[:spot], *cases[spot + 1 :]]).shares(case.question, families)
            for spot, case in enumerate(cases)
        ]
    )


def _mixed(evidence: Shares, hints: Shares, share: float) -> Shares:
    return (1 - share) * evidence + share * hints
