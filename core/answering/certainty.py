"""The certainty of an answer: two logistic regressions over a few features of how it was found.

`python -m tests.benchmarks fit-certainty` fits the coefficients and writes them to `certainty.json` with their origin.
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

from core.answering.excerpts import RERANKED, Candidate, pieces
from core.confidence.calibrator import STRONG_SCORE, raw_score
from core.knowledge.markdown import BlockKind
from core.knowledge.retriever import Retrieval
from core.knowledge.terms import distinct_terms, terms_of, words
from core.model.document import Passage
from core.model.prediction import Evaluation

VERSION = "answer-excerpt-3"  # of the features and coefficients; stored with every prediction

ANSWER_THRESHOLD = 0.7
UNSURE = 0.3  # maximum of `rce` for what is never certain: low enough for any `coe`
NEW_TERMS = 3  # fewest distinct terms that an answer adds to its question
EIGHTH = 8  # rank at which a passage shares only common words with the question
MOSTLY = 0.6  # share of the mentions of a product's name that are capitalised

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_ASKS_LEAVE = re.compile(
    r"^\W*(?:may|can|could|should)\s+(?:i|we|anybody|one)\b|\b(?:allowed|permitted|ok|okay)\b", re.IGNORECASE
)
_RULE = re.compile(
    r"\b(?:may|must|can|cannot|never|need(?:s|ed)?|without|allowed|permitted|forbidden|refused|approvals?|not)\b|n['’]t\b",
    re.IGNORECASE,
)
_ASKS_AMOUNT = re.compile(r"\bhow (?:long|many|much|big|large|often|old)\b", re.IGNORECASE)
_ASKS_TIME = re.compile(r"\bwhat time\b|\bwhen (?:is|are|was|were|will|did)\b", re.IGNORECASE)
_TIME = re.compile(
    r"\b(?:\d{1,2}[:.]\d\d|\d{1,2} ?[ap]m|\d{4}-\d\d|midnight|noon|(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
    r"|january|february|march|april|may \d|june|july|august|september|october|november|december"
    r"|hourly|daily|nightly|weekly|monthly|quarterly|yearly|every (?:\d+ \w+|hour|day|night|week|month|quarter|year))\b",
    re.IGNORECASE,
)
_NAME_PART = re.compile(r"[a-z0-9]+", re.IGNORECASE)
_ALERT = re.compile(r"\W*((?:[A-Z][a-z0-9]+){2,}|[A-Z]{2,}[a-z]\w*):\s")  # the name that an alert begins with


def features(query: str, retrieval: Retrieval, found: Sequence[Candidate]) -> dict[str, float]:
    """Return the features of a question's best candidate. There must be at least one candidate.

    - shared: number of the excerpt's distinct terms that are in the question, divided by the root of the number of all.
    - match: BM25 score of its passage as a share of the attainable maximum.
    - pairs: share of the question's pairs of neighbouring words that are adjacent in a piece of the excerpt.
    - off_subject: 1 if the excerpt's page is about another product or alert than the question names, else 0.
    - coverage: share of the question's term weight in the excerpt, the headings above it and the page's title.
    - spread: difference of that share between the best and the eighth-best passage found.
    - heading: largest share of the terms of a heading in the excerpt that are in the question.
    - by_words: 1 if no other candidate has a higher BM25 score, else 0.
    - cosine: that of the excerpt's meaning and the question's; 0 without an embedding model.
    - lead: difference of that cosine to the highest of the other candidates ranked by meaning that share no text with it.
    """
    best = found[0]
    held = distinct_terms(best.text)
    headings = [distinct_terms(piece.heading) for piece in best.pieces]
    return {
        "shared": len(held & retrieval.weights.keys()) / math.sqrt(len(held) or 1),
        "match": best.found.lexical / retrieval.attainable if retrieval.attainable else 0.0,
        "pairs": _pairs(query, best),
        "off_subject": float(_is_off_subject(query, best, retrieval)),
        "coverage": best.coverage,
        "spread": _spread(retrieval),
        "heading": max((_share(each, retrieval.weights) for each in headings), default=0.0),
        "by_words": float(best.lexical >= max(each.lexical for each in found)),
        "cosine": best.cosine,
        "lead": best.cosine - max((each.cosine for each in found[:RERANKED] if not each.overlaps(best)), default=0.0),
    }


def _share(terms: Collection[str], asked: Collection[str]) -> float:
    return sum(term in asked for term in terms) / len(terms) if terms else 0.0


def _pairs(query: str, best: Candidate) -> float:
    firsts = [found[0] for word in words(query) if (found := terms_of(word))]
    asked = {pair for pair in pairwise(firsts) if pair[0] != pair[1]}
    return len(asked & {pair for piece in best.pieces for pair in pairwise(piece.terms)}) / max(1, len(asked))


def _spread(retrieval: Retrieval) -> float:
    total = sum(retrieval.weights.values()) or 1.0
    held = [
        sum(retrieval.weights[term] for term in _held(each.passage, retrieval.weights)) for each in retrieval.passages
    ]
    best = sorted([*held, *[0.0] * EIGHTH], reverse=True)
    return (best[0] - best[EIGHTH - 1]) / total


def _held(passage: Passage, asked: Collection[str]) -> set[str]:
    """Return the terms of a question in a passage, its title and its headings."""
    said = [distinct_terms(passage.title), *(held for piece in pieces(passage) for held in (piece.path, piece.terms))]
    return {term for terms in said for term in terms if term in asked}


def _is_off_subject(query: str, best: Candidate, retrieval: Retrieval) -> bool:
    if alert := _ALERT.match(query):
        page = [each.passage for each in retrieval.passages if each.passage.document_id == best.passage.document_id]
        text = "\n".join([best.passage.document_id, best.passage.title, *(passage.text for passage in page)])
        return alert[1].lower() not in text.lower()
    family = best.passage.family
    return family not in named_families(query, retrieval.families) and is_product(family, retrieval)


def named_families(query: str, families: frozenset[str]) -> frozenset[str]:
    """Return the families that a question names: by their whole name, otherwise by a part of it."""
    asked = query.lower()
    letters = "".join(_NAME_PART.findall(asked))
    whole = frozenset(each for each in families if "".join(_NAME_PART.findall(each.lower())) in letters)
    words = {part for part in _NAME_PART.findall(asked) if len(part) > 3}
    return whole or frozenset(each for each in families if not words.isdisjoint(_NAME_PART.findall(each.lower())))


def is_product(family: str, retrieval: Retrieval) -> bool:
    """Return whether a family is named after a product, such as Loki, and not after a topic, such as guides.

    A part of a product's name is mostly capitalised in the prose of the family's retrieved passages.
    """
    if len(retrieval.families) < 2:
        return False
    prose = "\n".join(
        _CODE.sub("", f"{found.passage.title}\n{found.passage.text}")
        for found in retrieval.passages
        if found.passage.family == family
    )
    for part in filter(lambda part: len(part) > 2, _NAME_PART.findall(family)):
        found = re.findall(rf"(?<![\w/.-]){re.escape(part)}(?![\w/-])", prose, re.IGNORECASE)
        capitalised = sum(each[:1].isupper() for each in found)
        if found and capitalised >= MOSTLY * len(found):
            return True
    return False


def evaluation_of(query: str, retrieval: Retrieval, found: Sequence[Candidate]) -> Evaluation:
    """Return both measures in [0, 1]; 0 if nothing was found."""
    if not found:
        return Evaluation(0.0, 0.0)
    values, models = features(query, retrieval, found), _fitted()
    fit = models.get(retrieval.embedder) or models["none"]
    coe, rce = _logistic(fit["coe"], values), _logistic(fit["rce"], values)
    return Evaluation(coe, min(rce, UNSURE) if values["off_subject"] or _only_repeats(query, found[0]) else rce)


def _only_repeats(query: str, best: Candidate) -> bool:
    """Return whether an excerpt says hardly more than the question, such as an error without its cause."""
    said = {term for piece in best.pieces if piece.kind is not BlockKind.HEADING for term in piece.terms}
    return len(said - distinct_terms(query) - distinct_terms(best.passage.title)) < NEW_TERMS


def answerable(evaluation: Evaluation) -> bool:
    """Return whether an answer is shown at all: from a `coe` of ANSWER_THRESHOLD, by the intercepts of the fits."""
    return evaluation.coe >= ANSWER_THRESHOLD


def is_certain(evaluation: Evaluation) -> bool:
    """Return whether an answer is shown without a hedge, because its evidence is strong."""
    return raw_score(evaluation) >= STRONG_SCORE


def says_what_is_asked(question: str, text: str, marked: str) -> bool:
    """Return whether a text contains the kind of fact that a question asks for.

    A question for permission needs a rule, one for an amount a number, and one for a time a time. `marked` is the
    sentence of the text that is nearest to the question.
    """
    if _ASKS_LEAVE.search(question) and not _RULE.search(marked):
        return False
    if _ASKS_TIME.search(question) and not _TIME.search(marked or text):
        return False
    return not _ASKS_AMOUNT.search(question) or any(character.isdigit() for character in text)


def _logistic(model: Mapping[str, Any], values: Mapping[str, float]) -> float:
    evidence = model["intercept"] + sum(weight * values[key] for key, weight in model["coefficients"].items())
    return 1 / (1 + math.exp(-evidence))


@cache
def _fitted() -> dict[str, Any]:
    """Return the fits by the name of the embedding model; `none` also serves for models that nothing was fitted with."""
    return json.loads(Path(__file__).with_name("certainty.json").read_text("utf-8"))
