"""COE and RCE of an answer, computed from retrieval instead of asked of a model."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.confidence.prediction import Evaluation
from core.knowledge.ranking import RankedPassage

VERSION = "answer-evidence-2"  # of the formulas below: stored with every prediction

DECIDING = 3  # best passages of the evidence chain that are looked at

# Logistic regression that tells questions whose document is in the corpus from the same questions after it was taken
# out, and from questions of other trades. Fitted with equal weight on headings and on opening sentences of public
# documentation, each removed from its page and asked, and on questions in the tone of a chat.
INTERCEPT = -4.0
FOCUS = 2.4
DENSE = 6.4


def evaluate_answer(passages: Sequence[RankedPassage], known: float, coverage: float) -> Evaluation:
    """The two measures of LM-PACE, both in [0, 1].

    `passages` are those of the evidence chain, best first; `known` is the part of the question that the corpus has words
    for (see `Retrieval`); `coverage` the share of its term weight that the quoted statements hold (see `Composition`).

    `coe`, how far the references can decide at all: the logistic function of INTERCEPT + FOCUS · f + DENSE · known · d,
    where f and d are the best focus and the best cosine among the first DECIDING passages. Without
    `known` the cosine would leave out words that nobody here ever used. `rce`, how far they support this very answer: `coverage`.
    """
    best = passages[:DECIDING]
    if not best:
        return Evaluation(0.0, 0.0)
    focus, cosine = max(found.focus for found in best), max(found.dense for found in best)
    evidence = INTERCEPT + FOCUS * focus + DENSE * known * cosine
    return Evaluation(1 / (1 + math.exp(-evidence)), coverage)
