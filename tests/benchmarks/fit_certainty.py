"""Fits the coefficients of `core/answering/certainty.json` on questions whose answers are known.

    python -m tests.benchmarks fit-certainty --questions F… --corpus F… [--embeddings NAME] [--write]

`--embeddings` names the fit: of the embedded model (default), or `none`. `--questions` are as those of `plumbline eval
answers` with keys, some without an answer. Each file is an origin: the printed figures are of questions that were judged
by a fit without their file, and with the limit from which an answer is strong chosen without it, too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bot.config.settings import EMBEDDED
from bot.evaluation.answers import cases_of, corpus_files, indexed
from bot.wiring.application import embedder
from core.answering import certainty
from core.answering.certainty import ANSWER_THRESHOLD, may_be_certain
from core.answering.excerpts import candidates, excerpt_of
from core.answering.find import search
from core.answering.questions import standalone
from core.confidence.calibrator import STRONG_SCORE
from core.model.conversation import Audience, Speaker, Turn
from core.ports import Embedder

# The features of `coe` and of `rce` by embedding model: as few as do as well out of fold.
FEATURES = {
    EMBEDDED: (("shared", "cosine"), ("margin", "agree", "cosine")),
    "none": (("shared", "match"), ("margin", "agree", "match")),
}
PENALTY = 1.0  # of the squared coefficients of standardised features
WRONGLY_WITHHELD = 0.03  # share of the answerable questions that the threshold withholds, over all of them
PRECISION = (
    0.93  # share of the answers called strong that state what was asked, out of fold: a margin over the nine in ten
)
FEWEST = 10  # answers that this share must hold for
THRESHOLD = math.log(ANSWER_THRESHOLD / (1 - ANSWER_THRESHOLD))  # in log odds
TARGET = Path(certainty.__file__).with_name("certainty.json")


@dataclass(frozen=True, slots=True)
class Example:
    """A question's features, whether it has an answer, and whether the first excerpt states it.

    `holds` is False for an answer that is hedged whatever its features say.
    """

    values: dict[str, float]
    origin: str
    answerable: bool
    states: bool
    holds: bool


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit how far an answer can be relied on.")
    parser.add_argument("--questions", type=Path, action="append", required=True)
    parser.add_argument("--corpus", type=Path, action="append", required=True)
    parser.add_argument("--embeddings", choices=FEATURES, default=EMBEDDED)
    parser.add_argument("--write", action="store_true", help="replace core/answering/certainty.json")
    given = parser.parse_args()
    examples: list[Example] = []
    for questions in given.questions:
        examples += asyncio.run(_keyed(questions, given.corpus, embedder(given.embeddings)))
    models = json.loads(TARGET.read_text("utf-8")) | {given.embeddings: fitted(examples, *FEATURES[given.embeddings])}
    print(json.dumps(models, indent=2))
    if given.write:
        TARGET.write_text(json.dumps(models, indent=2) + "\n", "utf-8")


def fitted(examples: Sequence[Example], of_coe: Sequence[str], of_rce: Sequence[str]) -> dict[str, Any]:
    """Both regressions over these features, and what they gave on each origin that they were not fitted on."""
    judged = {
        origin: _judged(examples, origin, of_coe, of_rce) for origin in sorted({each.origin for each in examples})
    }
    coe = _coe(examples, of_coe)
    rce = _regression(of_rce, examples, [each.states for each in examples])
    margins = _margins(coe, rce, examples)
    strong, right = (sum(int(row[key]) for row in judged.values()) for key in ("strong", "right"))
    # A fit on everything is surer of itself than one out of fold: it calls as many answers strong, and no more.
    limit = float(np.sort(margins)[::-1][max(strong, 1) - 1])
    rce["intercept"] = round(rce["intercept"] - limit + 1e-4, 4)
    return {
        "fitted_by": "python -m tests.benchmarks fit-certainty",
        "fitted_on": f"{len(examples)} questions with keys",
        "out_of_fold": {
            "strong_precision": round(right / max(strong, 1), 3),
            "strong_share": round(strong / sum(each.answerable for each in examples), 3),
            "origins": judged,
        },
        "coe": coe,
        "rce": rce,
    }


def _judged(examples: Sequence[Example], origin: str, of_coe: Sequence[str], of_rce: Sequence[str]) -> dict[str, Any]:
    """How many answers of an origin are strong and right, and what is withheld of it, by a fit on the other origins."""
    rest = [each for each in examples if each.origin != origin]
    tested = [each for each in examples if each.origin == origin]
    limits = [np.zeros(0)]
    states: list[bool] = []
    for other in sorted({each.origin for each in rest}):  # the limit is chosen out of fold, too
        fold, within = ([each for each in rest if (each.origin == other) is is_in] for is_in in (False, True))
        rce = _regression(of_rce, fold, [each.states for each in fold])
        limits.append(_margins(_coe(fold, of_coe), rce, within))
        states += [each.states for each in within]
    limit = _limit(np.concatenate(limits), np.array(states))
    coe, rce = _coe(rest, of_coe), _regression(of_rce, rest, [each.states for each in rest])
    is_strong = _margins(coe, rce, tested) >= limit
    is_withheld = _predicted(coe, tested) < THRESHOLD
    has_answer = np.array([each.answerable for each in tested])
    return {
        "strong": int(is_strong.sum()),
        "right": int(np.array([each.states for each in tested])[is_strong].sum()),
        "share": round(float(is_strong.sum() / has_answer.sum()), 3),
        "withheld_wrongly": round(float(is_withheld[has_answer].mean()), 3),
        "withheld_rightly": round(float(is_withheld[~has_answer].mean()), 3),
    }


def _limit(margins: NDArray[np.float64], states: NDArray[np.bool_]) -> float:
    """The margin from which PRECISION of the answers, at least FEWEST, state what was asked; infinite if there is none."""
    order = np.argsort(-margins, kind="stable")
    counts = np.arange(1, len(order) + 1)
    right = np.cumsum(states[order]) / counts
    precise = np.flatnonzero((right >= PRECISION) & (counts >= FEWEST) & np.isfinite(margins[order]))
    return float(margins[order][precise[-1]]) if precise.size else math.inf


def _coe(examples: Sequence[Example], names: Sequence[str]) -> dict[str, Any]:
    """The regression whose intercept makes ANSWER_THRESHOLD the score below which WRONGLY_WITHHELD are withheld."""
    fit = _regression(names, examples, [each.answerable for each in examples])
    kept = _predicted(fit, [each for each in examples if each.answerable])
    fit["intercept"] = round(fit["intercept"] + THRESHOLD - float(np.quantile(kept, WRONGLY_WITHHELD)), 4)
    return fit


def _margins(coe: dict[str, Any], rce: dict[str, Any], examples: Sequence[Example]) -> NDArray[np.float64]:
    """How far the log odds `rce` are above what makes the score, the root of both measures' product, STRONG_SCORE."""
    answered = _predicted(coe, examples)
    needed = np.clip(STRONG_SCORE**2 * (1 + np.exp(-answered)), 1e-6, 1 - 1e-6)
    holds = np.array([each.holds for each in examples]) & (answered >= THRESHOLD) & (needed < 1 - 1e-5)
    return np.where(holds, _predicted(rce, examples) - np.log(needed / (1 - needed)), -np.inf)


def _regression(names: Sequence[str], examples: Sequence[Example], labels: Sequence[bool]) -> dict[str, Any]:
    values = np.array([[each.values[name] for name in names] for each in examples])
    mean, deviation = values.mean(axis=0), values.std(axis=0) + 1e-9
    linear: Any = import_module("sklearn.linear_model").LogisticRegression(C=1 / PENALTY, max_iter=1_000)
    linear.fit((values - mean) / deviation, labels)
    weights = linear.coef_[0] / deviation
    return {
        "intercept": round(float(linear.intercept_[0] - weights @ mean), 4),
        "coefficients": {name: round(float(weight), 4) for name, weight in zip(names, weights, strict=True)},
    }


def _predicted(model: dict[str, Any], examples: Sequence[Example]) -> NDArray[np.float64]:
    """The log odds of examples."""
    values = np.array([[each.values[name] for name in model["coefficients"]] for each in examples])
    return model["intercept"] + values @ np.array(list(model["coefficients"].values()))


async def _keyed(questions: Path, corpora: Sequence[Path], embedder: Embedder | None) -> list[Example]:
    cases = cases_of(questions)
    examples: list[Example] = []
    for name in sorted({case.corpus for case in cases}):
        files = [path for path in corpora if path.name.split(".")[0].endswith(name)]
        async with indexed(corpus_files(files), embedder) as retriever:
            for case in (case for case in cases if case.corpus == name):
                history = [Turn(Speaker.PERSON, each) for each in case.before]
                history += [Turn(Speaker.PLUMBLINE, "")] * bool(history)
                query = standalone(case.question, history)
                retrieval = await search(query, Audience(), retriever)
                ranked = candidates(query, retrieval)
                if ranked:
                    shown = excerpt_of(1, ranked[0])
                    certain = query == case.question and may_be_certain(query, ranked[0], shown, retrieval)
                    values = certainty.features(retrieval, ranked)
                    states = case.stated_in(shown.text)
                    examples.append(Example(values, questions.parent.name, bool(case.keys), states, certain))
    return examples
