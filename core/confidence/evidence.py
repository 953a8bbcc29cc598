"""COE and RCE of an answer, computed from retrieval instead of asked of a model."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from core.knowledge.ranking import RankedPassage

VERSION = "answer-evidence-3"  # of the formulas below: stored with every prediction

DECIDING = 3  # best passages of the evidence chain whose focus is looked at
LIKENED = 10  # best passages whose cosine is: those that only the lexical search returned have none

# Logistic regression that tells questions whose document is in the corpus from the same questions after it was taken
# out, and from questions of other trades. Fitted with equal weight on headings and on opening sentences of public
# documentation, each removed from its page and asked, and on questions in the tone of a chat.
COE_INTERCEPT = -4.0
FOCUS = 2.4
DENSE = 6.4

# Logistic regression that tells answers from the right document from others. Fitted with equal weight on either kind of
# answer, on 976 headings of two public documentations, each removed from its page and asked twice: of the whole
# corpus, and of the corpus without that page.
RCE_INTERCEPT = -3.0
LEAD = 7.2
COVERAGE = 2.2

# `rce` from which an answer is given as one. Of the headings whose page was taken out, 9 % in one documentation and
# 18 % in the other were still answered so; of the answers given so with the page there, 92 and 88 % were from it.
CERTAIN = 0.6


def decidability(passages: Sequence[RankedPassage], known: float) -> float:
    """`coe` in [0, 1]: how far the references can decide at all. Without passages, 0.

    `passages` are those of the evidence chain, best first; `known` is the part of the question that the corpus has words
    for (see `Retrieval`). The logistic function of COE_INTERCEPT + FOCUS · f + DENSE · known · d, where f is the best
    focus of the first DECIDING passages and d the best cosine of the first LIKENED. Without `known` the cosine would
    leave out words that nobody here ever used.
    """
    if not passages:
        return 0.0
    focus = max(found.focus for found in passages[:DECIDING])
    cosine = max(found.dense for found in passages[:LIKENED])
    return _logistic(COE_INTERCEPT + FOCUS * focus + DENSE * known * cosine)


def support(coverage: float, lead: float) -> float:
    """`rce` in [0, 1]: how far the references support this very answer.

    The logistic function of RCE_INTERCEPT + LEAD · lead + COVERAGE · coverage. `coverage` is the share of the question's
    term weight that the quoted statements hold (see `Composition`).
    """
    return _logistic(RCE_INTERCEPT + LEAD * lead + COVERAGE * coverage)


def lead(ranked: Sequence[RankedPassage], cited: Collection[str]) -> float:
    """How far the best passage of the cited documents is ahead of the best one of any other, in [0, 1].

    A share of the former's score. 0 if another document is as near or nearer: then any of them may be the one meant.
    """
    own = max((found.score for found in ranked if found.passage.document_id in cited), default=0.0)
    others = max((found.score for found in ranked if found.passage.document_id not in cited), default=0.0)
    return max(0.0, 1 - others / own) if own > 0 else 0.0


def _logistic(evidence: float) -> float:
    return 1 / (1 + math.exp(-evidence))
