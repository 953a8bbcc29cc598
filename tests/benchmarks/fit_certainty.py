"""Fits the coefficients of `core/answering/certainty.json` on questions whose answers are known.

    python -m tests.benchmarks fit-certainty --questions F… --corpus F… [--weak QUESTIONS,CORPUS]…
        [--embeddings NAME] [--write]

`--embeddings` names the fit: of the embedded model (default), or `none`. `--questions` are as those of `plumbline eval
answers` with keys, some without an answer. They alone fit `coe`.

`--weak` adds questions of which less is known, and which count WEAK each: with `answer` and `gold_doc`, an excerpt states
the answer if it holds at least half of its words, sentence by sentence; with `gold_doc` alone, if it is of that page;
with neither, none does. They help to fit `rce` only, as nothing says whether another page answers too.

The printed figures are out of fold: every product, the first folder of a question's `gold_doc` or else its corpus, is
judged by a fit without it. Questions without an answer have no product, and are parted into FOLDS.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bot.config.settings import EMBEDDED
from bot.evaluation.answers import library_of
from bot.evaluation.report import json_lines
from bot.evaluation.stated_answers import KeyedQuestion, cases_of
from bot.wiring.application import embedder
from core.answering import certainty
from core.answering.certainty import ANSWER_THRESHOLD
from core.answering.excerpts import Candidate, candidates
from core.answering.find import excerpt_of, may_be_certain, search
from core.answering.questions import standalone
from core.confidence.calibrator import STRONG_SCORE
from core.model.conversation import Speaker, Turn
from core.ports import Embedder

# The features of `coe` and of `rce` by embedding model: as few as do as well out of fold.
FEATURES = {
    EMBEDDED: (("shared", "cosine"), ("spread", "cosine")),
    "none": (("shared", "match", "pairs", "off_subject"), ("coverage", "spread", "heading")),
}
FOLDS = 5
WEAK = 0.3  # what a weakly labelled question counts
PENALTY = 1.0  # of the squared coefficients of standardised features
WRONGLY_WITHHELD = 0.03  # share of the answerable questions that the threshold withholds, over all of them
PRECISION = 0.9  # share of the answers called strong that state what was asked, out of fold
FEWEST = 10  # answers that this share must hold for
TARGET = Path(certainty.__file__).with_name("certainty.json")


@dataclass(frozen=True, slots=True)
class Example:
    """A question's features, whether it has an answer, whether the first excerpt states it, and what it counts.

    `holds` is False for an answer that is hedged whatever its features say.
    """

    values: dict[str, float]
    product: str
    answerable: bool
    states: bool
    holds: bool
    weight: float = 1.0

    @property
    def is_keyed(self) -> bool:
        return self.weight == 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit how far an answer can be relied on.")
    parser.add_argument("--questions", type=Path, action="append", required=True)
    parser.add_argument("--corpus", type=Path, action="append", required=True)
    parser.add_argument("--weak", action="append", default=[], metavar="QUESTIONS,CORPUS")
    parser.add_argument("--embeddings", choices=FEATURES, default=EMBEDDED)
    parser.add_argument("--write", action="store_true", help="replace core/answering/certainty.json")
    given = parser.parse_args()
    examples: list[Example] = []
    for questions in given.questions:
        examples += asyncio.run(_keyed(questions, given.corpus, embedder(given.embeddings)))
    for files in given.weak:
        rows, corpus = map(Path, files.split(","))
        examples += asyncio.run(_weak(rows, corpus, embedder(given.embeddings)))
    models = json.loads(TARGET.read_text("utf-8")) | {given.embeddings: fitted(examples, *FEATURES[given.embeddings])}
    print(json.dumps(models, indent=2))
    if given.write:
        TARGET.write_text(json.dumps(models, indent=2) + "\n", "utf-8")


def fitted(examples: Sequence[Example], of_coe: Sequence[str], of_rce: Sequence[str]) -> dict[str, Any]:
    """Both regressions over these features, and what they gave out of fold."""
    keyed = [each for each in examples if each.is_keyed]
    has_answer = np.array([each.answerable for each in keyed])
    states = np.array([each.states for each in keyed])
    coe, rce = np.zeros(len(keyed)), np.zeros(len(keyed))
    products = np.array([each.product for each in keyed])
    for product in sorted(set(products.tolist())):
        rest = [each for each in examples if each.product != product]
        tested = [keyed[place] for place in np.flatnonzero(products == product)]
        coe[products == product] = _predicted(_fit_coe(rest, of_coe), tested)
        rce[products == product] = _predicted(_fit_rce(rest, of_rce), tested)
    # The intercept makes ANSWER_THRESHOLD the score below which so many answers are withheld.
    threshold = math.log(ANSWER_THRESHOLD / (1 - ANSWER_THRESHOLD))
    final_coe, final_rce = _fit_coe(examples, of_coe), _fit_rce(examples, of_rce)
    moved = threshold - float(np.quantile(np.array(_predicted(final_coe, keyed))[has_answer], WRONGLY_WITHHELD))
    coe = coe + moved
    answered = coe >= threshold
    shown = answered & np.array([each.holds for each in keyed])
    count, precision = _strong(_margins(_logistic(coe), rce, shown), states)
    final_coe["intercept"] = round(final_coe["intercept"] + moved, 4)
    coe = np.array(_predicted(final_coe, keyed))
    margins = _margins(_logistic(coe), np.array(_predicted(final_rce, keyed)), shown)
    # A fit on everything is surer of itself than one out of fold: it calls as many answers strong, and no more.
    final_rce["intercept"] = round(final_rce["intercept"] - float(np.sort(margins)[::-1][count - 1]) + 1e-4, 4)
    return {
        "fitted_by": "python -m tests.benchmarks fit-certainty",
        "fitted_on": f"{len(keyed)} questions with keys, {len(examples) - len(keyed)} with weak labels",
        "out_of_fold": {
            "withheld_without_answer": round(float((~answered[~has_answer]).mean()), 3),
            "withheld_with_answer": round(float((~answered[has_answer]).mean()), 3),
            "strong_precision": round(precision, 3),
            "strong_share": round(count / len(keyed), 3),
        },
        "coe": final_coe,
        "rce": final_rce,
    }


def _margins(coe: NDArray[np.float64], rce: NDArray[np.float64], shown: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How far the log odds `rce` are above what makes the score, the root of both measures' product, STRONG_SCORE."""
    needed = np.clip(STRONG_SCORE**2 / np.maximum(coe, 1e-9), 1e-6, 1 - 1e-6)
    return np.where(shown & (needed < 1 - 1e-5), rce - np.log(needed / (1 - needed)), -np.inf)


def _strong(margins: NDArray[np.float64], states: NDArray[np.bool_]) -> tuple[int, float]:
    """How many answers, the surest first, can be called strong with PRECISION, and their precision."""
    order = np.argsort(-margins, kind="stable")
    counts = np.arange(1, len(order) + 1)
    right = np.cumsum(states[order]) / counts
    precise = np.flatnonzero((right >= PRECISION) & (counts >= FEWEST) & np.isfinite(margins[order]))
    count = int(counts[precise[-1]]) if precise.size else FEWEST
    return count, float(right[count - 1])


def _fit_coe(examples: Sequence[Example], names: Sequence[str]) -> dict[str, Any]:
    keyed = [each for each in examples if each.is_keyed]
    return _regression(names, keyed, [each.answerable for each in keyed])


def _fit_rce(examples: Sequence[Example], names: Sequence[str]) -> dict[str, Any]:
    return _regression(names, examples, [each.states for each in examples])


def _regression(names: Sequence[str], examples: Sequence[Example], labels: Sequence[bool]) -> dict[str, Any]:
    values = np.array([[each.values[name] for name in names] for each in examples])
    mean, deviation = values.mean(axis=0), values.std(axis=0) + 1e-9
    linear: Any = import_module("sklearn.linear_model").LogisticRegression(C=1 / PENALTY, max_iter=1_000)
    linear.fit((values - mean) / deviation, labels, [each.weight for each in examples])
    weights = linear.coef_[0] / deviation
    return {
        "intercept": round(float(linear.intercept_[0] - weights @ mean), 4),
        "coefficients": {name: round(float(weight), 4) for name, weight in zip(names, weights, strict=True)},
    }


def _predicted(model: dict[str, Any], examples: Sequence[Example]) -> list[float]:
    """The log odds of examples."""
    return [
        model["intercept"] + sum(weight * each.values[name] for name, weight in model["coefficients"].items())
        for each in examples
    ]


def _logistic(evidence: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-evidence))


async def _keyed(questions: Path, corpora: Sequence[Path], embedder: Embedder | None) -> list[Example]:
    rows: list[Any] = json_lines(questions, "question", "key", "corpus")
    cases = cases_of(questions)
    examples: list[Example] = []
    for name in sorted({case.corpus for case in cases}):
        files = [path for path in corpora if path.name.split(".")[0].endswith(name)]
        async with library_of(files, embedder) as (library, retriever):
            for number, (row, case) in enumerate(zip(rows, cases, strict=True)):
                if case.corpus != name:
                    continue
                history = [Turn(Speaker.PERSON, each) for each in case.before]
                history += [Turn(Speaker.PLUMBLINE, "")] * bool(history)
                query = standalone(case.question, history)
                retrieval = await search(query, library.audience(), retriever)
                ranked = candidates(query, retrieval)
                if ranked:
                    shown = excerpt_of(1, ranked[0])
                    values = certainty.features(query, retrieval, ranked)
                    examples.append(
                        Example(
                            values,
                            _product(row, case, number),
                            bool(case.keys),
                            case.stated_in(shown.text),
                            query == case.question and may_be_certain(query, ranked[0], shown, retrieval),
                        )
                    )
    return examples


def _product(row: dict[str, Any], case: KeyedQuestion, number: int) -> str:
    if not case.keys:
        return f"none {number % FOLDS}"
    folder, _, rest = str(row.get("gold_doc") or "").partition("/")
    return folder if rest else case.corpus


async def _weak(questions: Path, corpus: Path, embedder: Embedder | None) -> list[Example]:
    examples: list[Example] = []
    async with library_of([corpus], embedder) as (library, retriever):
        for row in json_lines(questions, "question"):
            retrieval = await search(row["question"], library.audience(), retriever)
            ranked = candidates(row["question"], retrieval)
            if ranked:
                values = certainty.features(row["question"], retrieval, ranked)
                examples.append(Example(values, "", "gold_doc" in row, _states_weakly(ranked[0], row), False, WEAK))
    return examples


def _states_weakly(candidate: Candidate, row: Mapping[str, str]) -> bool:
    is_page = candidate.passage.document_id.partition("/")[2] == row.get("gold_doc")
    return is_page and ("answer" not in row or _holds(candidate, row["answer"]))


def _holds(candidate: Candidate, answer: str) -> bool:
    wanted = _normal(answer)
    lines = [_normal(line) for line in re.split(r"\n|(?<=[.!?])\s", candidate.text)]
    held = sum(len(line.split()) for line in lines if line and line in wanted)
    return held >= 0.5 * min(len(wanted.split()), 110)


def _normal(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
