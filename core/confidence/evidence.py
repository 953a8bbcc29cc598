"""COE and RCE of an answer, computed from retrieval instead of asked of a model."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from core.confidence.calibrator import STRONG_SCORE, raw_score
from core.confidence.prediction import Evaluation
from core.knowledge.ranking import RankedPassage
from core.knowledge.retriever import Retrieval

VERSION = "answer-evidence-5"  # of the formulas below: stored with every prediction

DECIDING = 3  # best passages of the evidence chain whose words are looked at
LIKENED = 10  # best passages whose cosine is: those that only the lexical search returned have none
BREADTH = 4.0  # from which more words add no evidence: 99 % of the questions that this was fitted on lie below

# Logistic regression that tells questions whose section is in the corpus from others: from the same questions after
# their page was taken out, from questions about a page of the same project that is not there, and from questions of
# another trade. Fitted on 1,087 headings and opening sentences of five public documentations, each removed from its
# page, in 30 corpora of 175 to 2,114 passages. A fit on one corpus alone told its own questions apart no better.
COE_INTERCEPT = -4.9
NEARNESS = 2.7
MATCH = 2.1
FOCUS = 1.9

# Logistic regression that tells answers from the right document from others. Fitted with equal weight on either kind of
# answer, on 976 headings of two public documentations, each removed from its page and asked twice: of the whole
# corpus, and of the corpus without that page.
RCE_INTERCEPT = -3.0
LEAD = 7.2
COVERAGE = 2.2

# `rce` from which an answer is given as certain, if the evidence is strong. By this bound alone, of such headings whose
# page was taken out, 6 % in one documentation and 22 % in the other were still answered so; of the answers given so with
# the page there, 94 and 84 % were from it.
CERTAIN = 0.6


def decidability(passages: Sequence[RankedPassage], retrieval: Retrieval) -> float:
    """`coe` in [0, 1]: how far the references can decide at all. Without passages, 0.

    `passages` are those of the evidence chain, best first, `retrieval` what they were found with. The logistic function
    of COE_INTERCEPT + NEARNESS · n + MATCH · √(b · m) + FOCUS · √(b · f). None of them depends on the size of the corpus
    or on the scale that its encoder gives to cosines:

    n: how far the best cosine of the first LIKENED passages is above the background of this query, as a share of what is
    left up to 1; times `known`, since a cosine leaves out the words that nobody here ever used.
    m: the best BM25 score of the first DECIDING passages, as a share of what is attainable.
    f: their best focus, which is the same share of a single window.
    b: the breadth of the query, at most BREADTH. The more words a question has, the less likely it is that a share of
    them stands in one place by chance.
    """
    if not passages:
        return 0.0
    nearness = _nearness(max(found.dense for found in passages[:LIKENED]), retrieval)
    deciding, breadth = passages[:DECIDING], min(retrieval.breadth, BREADTH)
    match = max(found.lexical for found in deciding) / retrieval.attainable if retrieval.attainable else 0.0
    focus = max(found.focus for found in deciding)
    matched = MATCH * math.sqrt(breadth * match) + FOCUS * math.sqrt(breadth * focus)
    return _logistic(COE_INTERCEPT + NEARNESS * nearness + matched)


def support(coverage: float, lead: float) -> float:
    """`rce` in [0, 1]: how far the references support this very answer.

    The logistic function of RCE_INTERCEPT + LEAD · lead + COVERAGE · coverage. `coverage` is the share of the question's
    term weight that the quoted statements hold (see `Composition`).
    """
    return _logistic(RCE_INTERCEPT + LEAD * lead + COVERAGE * coverage)


def certain(evaluation: Evaluation) -> bool:
    """Whether an answer is given as certain: the references support it, and the evidence as a whole is strong."""
    return evaluation.rce >= CERTAIN and raw_score(evaluation) >= STRONG_SCORE


def lead(ranked: Sequence[RankedPassage], cited: Collection[str]) -> float:
    """How far the best passage of the cited documents is ahead of the best one of any other, in [0, 1].

    A share of the former's score. 0 if another document is as near or nearer: then any of them may be the one meant.
    Families count for nothing here: that a question is about one does not say that its documents answer.
    """
    own = max((found.score + found.withheld for found in ranked if found.passage.document_id in cited), default=0.0)
    others = max(
        (found.score + found.withheld for found in ranked if found.passage.document_id not in cited), default=0.0
    )
    return max(0.0, 1 - others / own) if own > 0 else 0.0


def _nearness(cosine: float, retrieval: Retrieval) -> float:
    room = 1 - retrieval.background
    return retrieval.known * max(0.0, cosine - retrieval.background) / room if room > 0 else 0.0


def _logistic(evidence: float) -> float:
    return 1 / (1 + math.exp(-evidence))
