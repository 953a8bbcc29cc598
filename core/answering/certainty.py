"""The certainty of an answer: two logistic regressions over a few features of how it was found.

`python -m tests.benchmarks fit-certainty` fits the coefficients and writes them to `certainty.json` with their origin: for
words alone (`none`), and with the meaning that the embedded model gives.
`coe` estimates the probability that the corpus answers the question, `rce` that the first excerpt states the answer.
The intercept of `rce` is set so that answers with a score of at least STRONG_SCORE, which are shown without a hedge,
state the answer in nine of ten cases out of fold.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from core.answering.answer_view import first_line
from core.answering.excerpts import Candidate, distinct
from core.answering.fact_kinds import PERSON, kinds_asked, says_what_is_asked
from core.confidence.calibrator import STRONG_SCORE, raw_score
from core.knowledge.retriever import Retrieval, is_product, named_families
from core.knowledge.terms import distinct_terms
from core.model.answer import Excerpt
from core.model.badge import Evaluation

VERSION = "answer-excerpt-4"  # of the features and coefficients; stored with every prediction

CLEAR = 2.0  # margin beyond which a larger one says no more
ANSWER_THRESHOLD = 0.7  # the `coe` from which an answer is shown: the intercepts of the fits see to it

# The condition at the end of a question, with a word before it that makes it one: “… in the freeze?”, “… for payments?”.
_CONDITION = re.compile(
    r"\b(?:in|during|after|before|without|while|if|when|on|with|for|at|outside(?: of)?|from|under) "
    r"(?:the |an? |our |my |its )?(?P<condition>[\w-]{2,40}(?: [\w-]{2,40}){0,2})\W*\Z",
    re.IGNORECASE,
)
_ALERT = re.compile(r"\W*((?:[A-Z][a-z0-9]+){2,}|[A-Z]{2,}[a-z]\w*):\s")  # the name that an alert begins with


def features(retrieval: Retrieval, ranked: Sequence[Candidate]) -> dict[str, float]:
    """Return the features of a question's best candidate. There must be at least one candidate.

    - shared: number of the excerpt's distinct terms that are in the question, divided by the root of the number of all.
    - match: BM25 score of its passage as a share of the attainable maximum.
    - cosine: of the excerpt's meaning and the question's; 0 without an embedding model.
    - margin: difference between its score and that of the next candidate that shows other text, at most CLEAR; 0 if
      there is none, because nothing was compared.
    - agree: how many of three rankings put its page first: excerpts by words, excerpts by meaning, and the search.
    """
    best, *others = distinct(ranked, 2)
    held = distinct_terms(best.text)
    firsts = (
        max(ranked, key=lambda each: each.lexical).passage,
        max(ranked, key=lambda each: each.cosine).passage,
        max(retrieval.passages, key=lambda each: each.score).passage,
    )
    return {
        "shared": len(held & retrieval.weights.keys()) / math.sqrt(len(held) or 1),
        "match": best.read.found.lexical / retrieval.attainable if retrieval.attainable else 0.0,
        "cosine": best.cosine,
        "margin": min(best.score - others[0].score, CLEAR) if others else 0.0,
        "agree": float(sum(each.document_id == best.passage.document_id for each in firsts)),
    }


def is_off_subject(query: str, best: Candidate, retrieval: Retrieval) -> bool:
    """Return whether a question names a product or alert, and the excerpt's page is about another one."""
    if alert := _ALERT.match(query):
        page = [each.passage for each in retrieval.passages if each.passage.document_id == best.passage.document_id]
        text = "\n".join([best.passage.document_id, best.passage.title, *(passage.text for passage in page)])
        return alert[1].lower() not in text.lower()
    family, named = best.passage.family, named_families(query, retrieval.families)
    return bool(named) and family not in named and is_product(family, retrieval)


def evaluation_of(retrieval: Retrieval, ranked: Sequence[Candidate]) -> Evaluation:
    """Return both measures in [0, 1]; 0 if nothing was found. A model that nothing was fitted with only ranks."""
    if not ranked:
        return Evaluation(0.0, 0.0)
    values, fit = features(retrieval, ranked), _fitted().get(retrieval.embedder, _fitted()["none"])
    return Evaluation(_logistic(fit["coe"], values), _logistic(fit["rce"], values))


def answerable(evaluation: Evaluation) -> bool:
    """Return whether an answer is shown at all."""
    return evaluation.coe >= ANSWER_THRESHOLD


def is_certain(evaluation: Evaluation) -> bool:
    """Return whether an answer is shown without a hedge, because its evidence is strong."""
    return raw_score(evaluation) >= STRONG_SCORE


def meets_condition(question: str, text: str) -> bool:
    """Return whether a text speaks of the condition that a question ends with; true if it ends with none.

    What holds in general need not hold there: who approves a roll-back is not who approves one in the freeze.
    """
    match = _CONDITION.search(question)
    return match is None or distinct_terms(match["condition"]) <= distinct_terms(text)


def may_be_certain(query: str, best: Candidate, shown: Excerpt, retrieval: Retrieval) -> bool:
    """Return whether an excerpt says what is asked; if not, it is hedged however well it matches."""
    return (
        says_what_is_asked(query, shown.text, first_line(shown))
        and meets_condition(query, f"{best.passage.title}\n{shown.text}")
        and PERSON not in kinds_asked(query)
        and not is_off_subject(query, best, retrieval)
    )


def _logistic(model: Mapping[str, Any], values: Mapping[str, float]) -> float:
    evidence = model["intercept"] + sum(weight * values[key] for key, weight in model["coefficients"].items())
    return 1 / (1 + math.exp(-evidence))


@cache
def _fitted() -> dict[str, Any]:
    """Return the fits by the name of the embedding model."""
    return json.loads(Path(__file__).with_name("certainty.json").read_text("utf-8"))
