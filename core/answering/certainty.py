"""How far an answer can be relied on: two logistic regressions over a few features of how it was found.

The coefficients are fitted by `python -m tests.benchmarks fit-certainty` and stand in `certainty.json` with where they
come from. `coe` estimates that the corpus answers the question at all, `rce` that the first excerpt states the answer. The
intercept of the latter is set so that answers from STRONG_SCORE on, which are called strong and shown without a hedge,
stated it in nine of ten cases out of fold.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from core.answering.excerpts import Candidate
from core.confidence.calibrator import STRONG_SCORE, raw_score
from core.knowledge.retriever import Retrieval
from core.model.prediction import Evaluation

VERSION = "answer-excerpt-1"  # of the features and coefficients: stored with every prediction

COE = ("coverage", "match", "off_subject", "breadth")
RCE = ("coverage", "off_subject", "lead", "gap", "agreement")

MOSTLY = 0.6  # share of the mentions of a product's name that are capitalised

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_ASKS_LEAVE = re.compile(
    r"^\W*(?:may|can|could|should)\s+(?:i|we|anybody|one)\b|\b(?:allowed|permitted|ok|okay)\b", re.IGNORECASE
)
_RULE = re.compile(
    r"\b(?:may|must|can|cannot|never|need(?:s|ed)?|without|allowed|permitted|forbidden|refused|approvals?|not)\b|n['’]t\b",
    re.IGNORECASE,
)
_ASKS_AMOUNT = re.compile(r"\bhow (?:long|many|much|big|large|often|old)\b|\bwhat time\b", re.IGNORECASE)
_NAME_PART = re.compile(r"[^\W_]{3,}")


def features(retrieval: Retrieval, found: Sequence[Candidate]) -> dict[str, float]:
    """Return the features of a question's candidates, of which there is at least one.

    coverage: share of the question's term weight in the excerpt, the headings above it and the page's title.
    match: BM25 score of its passage as a share of the most that any could reach.
    off_subject: 1 if the question does not name the excerpt's family although that is a product, else 0.
    lead: by how much the best candidate of any other document falls behind, as a share of the score.
    gap: the same of the best candidate that shows anything else, be it of the same document.
    agreement: 1 if plain BM25 would show the same, 0.5 if other text of the same document, else 0.
    breadth: logarithm of the number of distinct terms of the question.
    """
    best = found[0]
    document = best.passage.document_id
    rival = next((each.score for each in found if each.passage.document_id != document), 0.0)
    plain = max(found, key=lambda each: each.lexical)
    other = next((each.score for each in found if not each.overlaps(best)), 0.0)
    return {
        "coverage": best.coverage,
        "match": best.found.lexical / retrieval.attainable if retrieval.attainable else 0.0,
        "off_subject": float(best.subject <= 0 and is_product(best.passage.family, retrieval)),
        "lead": 1 - rival / best.score if best.score > 0 else 0.0,
        "gap": 1 - other / best.score if best.score > 0 else 0.0,
        "agreement": ((plain.passage.document_id == document) + plain.overlaps(best)) / 2,
        "breadth": math.log(max(1, len(retrieval.weights))),
    }


def is_product(family: str, retrieval: Retrieval) -> bool:
    """Tell whether a family bears the name of a thing that people name, such as Loki, and not of a topic, such as guides.

    In the prose of its retrieved passages a part of its name is then mostly capitalised.
    """
    if len(retrieval.families) < 2:
        return False
    prose = "\n".join(
        _CODE.sub("", f"{found.passage.title}\n{found.passage.text}")
        for found in retrieval.passages
        if found.passage.family == family
    )
    for part in _NAME_PART.findall(family):
        found = re.findall(rf"(?<![\w/.-]){re.escape(part)}(?![\w/-])", prose, re.IGNORECASE)
        capitalised = sum(each[:1].isupper() for each in found)
        if found and capitalised >= MOSTLY * len(found):
            return True
    return False


def evaluation_of(retrieval: Retrieval, found: Sequence[Candidate]) -> Evaluation:
    """Return both measures in [0, 1]; 0 where nothing was found."""
    if not found:
        return Evaluation(0.0, 0.0)
    values = features(retrieval, found)
    return Evaluation(_logistic("coe", values), _logistic("rce", values))


def answerable(evaluation: Evaluation) -> bool:
    """Tell whether an answer is shown at all."""
    return evaluation.coe >= answer_threshold()


def answer_threshold() -> float:
    """Return the `coe` from which an answer is shown."""
    return _fitted()["answer_threshold"]


def is_certain(evaluation: Evaluation) -> bool:
    """Tell whether an answer is shown without a hedge: where its evidence is called strong."""
    return raw_score(evaluation) >= STRONG_SCORE


def says_what_is_asked(question: str, text: str, marked: str) -> bool:
    """Tell whether a text can answer a question of its kind: a rule where leave is asked for, a number where an amount is.

    `marked` is the sentence of it that is nearest to the question.
    """
    if _ASKS_LEAVE.search(question) and not _RULE.search(marked):
        return False
    return not _ASKS_AMOUNT.search(question) or any(character.isdigit() for character in text)


def _logistic(name: str, values: Mapping[str, float]) -> float:
    model = _fitted()[name]
    evidence = model["intercept"] + sum(weight * values[key] for key, weight in model["coefficients"].items())
    return 1 / (1 + math.exp(-evidence))


@cache
def _fitted() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("certainty.json").read_text("utf-8"))
