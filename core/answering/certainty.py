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
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from core.answering.excerpts import Candidate
from core.answering.statements import pieces
from core.confidence.calibrator import STRONG_SCORE, raw_score
from core.knowledge.retriever import Retrieval, is_product, named_families
from core.knowledge.terms import distinct_terms, terms_of, words
from core.model.badge import Evaluation
from core.model.document import Passage

VERSION = "answer-excerpt-3"  # of the features and coefficients; stored with every prediction

ANSWER_THRESHOLD = 0.7  # the `coe` from which an answer is shown: the intercepts of the fits see to it
EIGHTH = 8  # rank at which a passage shares only common words with the question

# The condition at the end of a question, with a word before it that makes it one: “… in the freeze?”, “… for payments?”.
_CONDITION = re.compile(
    r"\b(?:in|during|after|before|without|while|if|when|on|with|for|at|outside(?: of)?|from|under) "
    r"(?:the |an? |our |my |its )?(?P<condition>[\w-]{2,40}(?: [\w-]{2,40}){0,2})\W*\Z",
    re.IGNORECASE,
)
_ALERT = re.compile(r"\W*((?:[A-Z][a-z0-9]+){2,}|[A-Z]{2,}[a-z]\w*):\s")  # the name that an alert begins with


def features(query: str, retrieval: Retrieval, ranked: Sequence[Candidate]) -> dict[str, float]:
    """Return the features of a question's best candidate. There must be at least one candidate.

    - shared: number of the excerpt's distinct terms that are in the question, divided by the root of the number of all.
    - match: BM25 score of its passage as a share of the attainable maximum.
    - pairs: share of the question's pairs of neighbouring words that are adjacent in a piece of the excerpt.
    - off_subject: 1 if the excerpt's page is about another product or alert than the question names, else 0.
    - coverage: share of the question's term weight in the excerpt, the headings above it and the page's title.
    - spread: difference of that share between the best and the eighth-best passage found.
    - heading: largest share of the terms of a heading in the excerpt that are in the question.
    - cosine: of the excerpt's meaning and the question's; 0 without an embedding model.
    """
    best = ranked[0]
    held = distinct_terms(best.text)
    headings = [distinct_terms(piece.heading) for piece in best.pieces]
    return {
        "shared": len(held & retrieval.weights.keys()) / math.sqrt(len(held) or 1),
        "match": best.found.lexical / retrieval.attainable if retrieval.attainable else 0.0,
        "pairs": _pairs(query, best),
        "off_subject": float(is_off_subject(query, best, retrieval)),
        "coverage": best.coverage,
        "spread": _spread(retrieval),
        "heading": max(_share(each, retrieval.weights) for each in headings),
        "cosine": best.cosine,
    }


def _share(terms: Collection[str], others: Collection[str]) -> float:
    return sum(term in others for term in terms) / len(terms) if terms else 0.0


def _pairs(query: str, best: Candidate) -> float:
    firsts = [word_terms[0] for word in words(query) if (word_terms := terms_of(word))]
    question_pairs = {pair for pair in pairwise(firsts) if pair[0] != pair[1]}
    return len(question_pairs & {pair for piece in best.pieces for pair in pairwise(piece.terms)}) / max(
        1, len(question_pairs)
    )


def _spread(retrieval: Retrieval) -> float:
    total = sum(retrieval.weights.values()) or 1.0
    held = [
        sum(retrieval.weights[term] for term in _held(each.passage, retrieval.weights)) for each in retrieval.passages
    ]
    best = sorted([*held, *[0.0] * EIGHTH], reverse=True)
    return (best[0] - best[EIGHTH - 1]) / total


def _held(passage: Passage, question_terms: Collection[str]) -> set[str]:
    """Return the terms of a question in a passage, its title and its headings."""
    parts = [distinct_terms(passage.title), *(held for piece in pieces(passage) for held in (piece.path, piece.terms))]
    return {term for terms in parts for term in terms if term in question_terms}


def is_off_subject(query: str, best: Candidate, retrieval: Retrieval) -> bool:
    """Return whether an excerpt's page is about another product or alert than a question names."""
    if alert := _ALERT.match(query):
        page = [each.passage for each in retrieval.passages if each.passage.document_id == best.passage.document_id]
        text = "\n".join([best.passage.document_id, best.passage.title, *(passage.text for passage in page)])
        return alert[1].lower() not in text.lower()
    family = best.passage.family
    return family not in named_families(query, retrieval.families) and is_product(family, retrieval)


def evaluation_of(query: str, retrieval: Retrieval, ranked: Sequence[Candidate]) -> Evaluation:
    """Return both measures in [0, 1]; 0 if nothing was found. A model that nothing was fitted with only ranks."""
    if not ranked:
        return Evaluation(0.0, 0.0)
    values, fit = features(query, retrieval, ranked), _fitted().get(retrieval.embedder, _fitted()["none"])
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


def _logistic(model: Mapping[str, Any], values: Mapping[str, float]) -> float:
    evidence = model["intercept"] + sum(weight * values[key] for key, weight in model["coefficients"].items())
    return 1 / (1 + math.exp(-evidence))


@cache
def _fitted() -> dict[str, Any]:
    """Return the fits by the name of the embedding model."""
    return json.loads(Path(__file__).with_name("certainty.json").read_text("utf-8"))
