"""The calibration of a language model's judgements of answers: table 2 of LM-PACE.

The evidence engine answers the questions of `plumbline eval answers`; the model judges each answer by the passages that
were found (COE and RCE, `core/confidence/model_estimator.py`), and the question's `key` says whether it is right. Four
methods turn both scores into a probability: thresholds that are optimal (equation 3) or of equal width, on COE and RCE
or on RCE alone. They are fitted on four fifths of the answers and measured on the last fifth, in turn; figures are means
over SPLITS such divisions.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from bot.evaluation.answers import KeyedQuestion, asked_of, by_corpus, cases_of, corpus_files, indexed, shown_text
from bot.evaluation.report import ASKING, SEED, RecordedModel, costs, print_rows
from core.answering.find import find_answer, search
from core.confidence.calibrator import CANDIDATES, CATEGORIES, fit_thresholds, middles
from core.confidence.ensemble import FloatArray
from core.confidence.measures import auroc, brier, ece
from core.confidence.model_estimator import Claim, Effort, Reference, estimate
from core.knowledge.retriever import Retriever
from core.model.badge import RCE_ALONE, Evaluation, Steps, Transformation
from core.model.conversation import Audience
from core.model.errors import MalformedInput
from core.ports import Embedder
from tests.benchmarks.asked_model import AskedModel, truth_of

FOLDS = 5
SPLITS = 5
FEWEST = 20  # judged answers, below which nothing can be fitted

OPTIMISED = "COE and RCE, optimised"
OPTIMISED_ALONE = "RCE only, optimised"
UNIFORM = "COE and RCE, uniform"
UNIFORM_ALONE = "RCE only, uniform"


class Scores(NamedTuple):
    """Both scores of each claim, and whether it is right, as 0 or 1."""

    coe: FloatArray
    rce: FloatArray
    correct: FloatArray

    def at(self, places: NDArray[np.int64]) -> Scores:
        return Scores(self.coe[places], self.rce[places], self.correct[places])


def _optimised(scores: Scores) -> Steps:
    return fit_thresholds(scores.coe, scores.rce, scores.correct, CANDIDATES)


def _optimised_alone(scores: Scores) -> Steps:
    return fit_thresholds(scores.coe, scores.rce, scores.correct, [RCE_ALONE])


def _uniform(scores: Scores) -> Steps:
    """Return the transformation that is best with equally wide categories, so that the thresholds alone are compared."""
    return min(map(uniform, CANDIDATES), key=lambda steps: ece(probabilities(steps, scores), scores.correct))


def _uniform_alone(_: Scores) -> Steps:
    return uniform(RCE_ALONE)


METHODS: Mapping[str, Callable[[Scores], Steps]] = {
    OPTIMISED: _optimised,
    OPTIMISED_ALONE: _optimised_alone,
    UNIFORM: _uniform,
    UNIFORM_ALONE: _uniform_alone,
}
"""The columns of the paper's table 2."""


def uniform(transformation: Transformation) -> Steps:
    """Return equally wide categories of a score."""
    upper = np.arange(1, CATEGORIES + 1) / CATEGORIES
    return Steps(tuple(upper.tolist()), tuple(middles(CATEGORIES).tolist()), transformation)


def probabilities(steps: Steps, scores: Scores) -> FloatArray:
    """Return the probability of each claim."""
    pairs = zip(scores.coe.tolist(), scores.rce.tolist(), strict=True)
    return np.array([steps.probability(Evaluation(coe, rce)) for coe, rce in pairs])


def measured(scores: Scores) -> dict[str, dict[str, float | None]]:
    """Return `ece`, `brier` and `auroc` of each method, cross-validated; `auroc` is None if all claims are alike."""
    figures: dict[str, list[tuple[float, float, float]]] = {name: [] for name in METHODS}
    for split in range(SPLITS):
        folds = np.array_split(np.random.default_rng([SEED, split]).permutation(len(scores.correct)), FOLDS)
        order = np.concatenate(folds)
        fitted_on = [scores.at(np.concatenate([each for each in folds if each is not fold])) for fold in folds]
        for name, method in METHODS.items():
            parts = [probabilities(method(seen), scores.at(fold)) for seen, fold in zip(fitted_on, folds, strict=True)]
            claimed, correct = np.concatenate(parts), scores.correct[order]
            figures[name].append((ece(claimed, correct), brier(claimed, correct), auroc(claimed, correct)))
    return {name: _rounded(np.mean(rows, axis=0).tolist()) for name, rows in figures.items()}


def _rounded(values: Sequence[float]) -> dict[str, float | None]:
    named = zip(("ece", "brier", "auroc"), values, strict=True)
    return {name: None if math.isnan(value) else round(value, 4) for name, value in named}


def run(questions: Path, corpora: Sequence[Path], embedder: Embedder | None, llm: AskedModel) -> dict[str, Any]:
    """Return the figures described above. Raises MalformedInput for an invalid file or too few answers."""
    return asyncio.run(_run(cases_of(questions), corpora, embedder, llm))


async def _run(
    cases: Sequence[KeyedQuestion], corpora: Sequence[Path], embedder: Embedder | None, llm: AskedModel
) -> dict[str, Any]:
    judged: list[tuple[Evaluation, bool]] = []
    async with llm.opened([truth_of(case) for case in cases]) as model:
        if model is None:
            raise MalformedInput("A language model is needed: name its server, or a recording of its replies.")
        for group, files in by_corpus(cases, corpora):
            async with indexed(corpus_files(files), embedder) as retriever:
                judgements = [await _judged(case, Audience(), retriever, model) for case in group]
                judged += filter(None, judgements)
        cost = costs([model.calls])
    if len(judged) < FEWEST:
        raise MalformedInput(f"Only {len(judged)} answers were judged; {FEWEST} are needed.")
    scores = Scores(*np.array([(each.coe, each.rce, float(right)) for each, right in judged]).T)
    return {
        "measure": "confidence",
        "engine": model.name,
        "seed": SEED,
        "cases": len(judged),
        "right": round(float(scores.correct.mean()), 4),
        "calls": cost["calls"],
        "results": measured(scores),
    }


async def _judged(
    case: KeyedQuestion, audience: Audience, retriever: Retriever, model: RecordedModel
) -> tuple[Evaluation, bool] | None:
    """Return both scores of the evidence engine's answer, and whether it states what was asked; None without one."""
    question = asked_of(" ".join([*case.before, case.question]), audience)
    answer, _ = await find_answer(question, retriever)
    shown = shown_text(answer)
    if not shown:
        return None
    retrieval = await search(question.text, audience, retriever)
    passages = [Reference(each.passage.document_id, each.passage.text) for each in retrieval.passages]
    claim = Claim("", question.text, shown, question.asked_at)
    return await estimate(model, claim, passages, ASKING, Effort()), case.stated_in(shown)


def print_table(figures: Mapping[str, Any], console: Console) -> None:
    """Print table 2: the calibration error of each method, how much larger than the first one's it is, and its sharpness."""
    best = figures["results"][OPTIMISED]["ece"]
    rows = [
        (name, f"{row['ece']:.3f}", f"{row['ece'] - best:+.3f}", f"{row['brier']:.3f}", _area(row["auroc"]))
        for name, row in figures["results"].items()
    ]
    title = f"{figures['cases']} answers, {figures['right']:.0%} of them right, judged by {figures['engine']}"
    print_rows(console, ("method", "ECE", "difference", "Brier", "AUROC"), rows, title)


def _area(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
