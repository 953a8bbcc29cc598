"""The mapping of LM-PACE: optimal thresholds of π(c, s; θ) for fixed confidence categories (section 4.4, equation 3).

For a given θ the best thresholds are found exactly, by dynamic programming over the cuts between neighbouring scores:
the objective is a sum over categories, so the best last category leaves a smaller problem of the same form. θ itself has
two bounded parts and an objective with jumps, so a grid of it is searched.

`python -m tests.benchmarks lm-pace` measures it on a simulated pair of scores whose true probabilities are known: the
ordering of the paper's table 2. Its four columns are thresholds optimised or of equal width, on COE and RCE or on RCE
alone. Fitted on one sample, measured on another; a figure is the mean over the seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from core.confidence.calibrator import CANDIDATES
from core.confidence.ensemble import FloatArray, Tally, boundaries, count, distinct
from core.confidence.measures import brier, ece
from core.model.calibrator import RCE_ALONE, Transformation

CATEGORIES = 10
MAX_CUTS = 100  # maximum number of score levels between which a threshold may lie
SHARPNESS = 0.1  # weight of the Brier score, which prefers the sharper of two equally calibrated assignments

Weighting = Callable[[float, FloatArray], FloatArray]  # ω: a category's confidence and counts → its weights


def by_count(_confidence: float, counts: FloatArray) -> FloatArray:
    """Weight by count, which makes equation 3 the expected calibration error."""
    return counts


def by_confidence(confidence: float, counts: FloatArray) -> FloatArray:
    """Weight by count and confidence, so that errors of confident predictions cost more."""
    return counts * confidence


SEEDS = range(5)
LABELS = 2_000  # as many as the paper's validation set
TESTED = 3_000

OPTIMISED = "COE and RCE, optimised"
OPTIMISED_ALONE = "RCE only, optimised"
UNIFORM = "COE and RCE, uniform"
UNIFORM_ALONE = "RCE only, uniform"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Confidence categories: scores up to and including `upper[i]` (ascending to 1) get `confidences[i]`."""

    transformation: Transformation
    upper: FloatArray
    confidences: FloatArray

    def probabilities(self, coe: FloatArray, rce: FloatArray) -> FloatArray:
        scores = np.minimum(self.transformation.score(coe, rce), 1.0)
        return self.confidences[np.searchsorted(self.upper, scores)]


def uniform(transformation: Transformation, categories: int = CATEGORIES) -> Thresholds:
    """Return equally wide categories with their midpoints as confidences, without optimisation."""
    return Thresholds(transformation, np.arange(1, categories + 1) / categories, _middles(categories))


def fit_thresholds(
    coe: FloatArray,
    rce: FloatArray,
    correct: FloatArray,
    *,
    weighting: Weighting = by_count,
    categories: int = CATEGORIES,
    transformations: Sequence[Transformation] = CANDIDATES,
) -> Thresholds:
    """Return the thresholds and transformation that minimise equation 3. The labels have shape (n,), n ≥ 1."""
    fits = [_fit(transformation, coe, rce, correct, weighting, categories) for transformation in transformations]
    return min(fits, key=lambda fit: fit[0])[1]


def _fit(
    transformation: Transformation,
    coe: FloatArray,
    rce: FloatArray,
    correct: FloatArray,
    weighting: Weighting,
    categories: int,
) -> tuple[float, Thresholds]:
    scores = transformation.score(coe, rce)
    levels = distinct(np.quantile(scores, np.linspace(0, 1, MAX_CUTS), method="inverted_cdf"))
    tally = count(scores, correct, levels)
    objective, cuts = _best_cuts(tally, _middles(categories), weighting)
    bounds = np.r_[0.0, boundaries(levels), 1.0]
    return objective, Thresholds(transformation, bounds[cuts], _middles(categories))


def _best_cuts(tally: Tally, confidences: FloatArray, weighting: Weighting) -> tuple[float, list[int]]:
    """Return the objective, and for each category the number of levels up to its upper end."""
    right, counts = (np.r_[0.0, np.cumsum(values)] for values in (tally.right, tally.counts))
    right_in, counts_in = right - right[:, None], counts - counts[:, None]  # in the levels from row to column
    ordered = np.triu(np.ones(counts_in.shape, bool))
    best = np.where(np.arange(len(counts)) == 0, 0.0, np.inf)
    starts: list[FloatArray] = []
    for confidence in confidences:
        off = np.abs(confidence - right_in / np.maximum(counts_in, 1))
        brier = counts_in * confidence**2 + right_in * (1 - 2 * confidence)
        cost = np.where(ordered, weighting(confidence, counts_in) * off + SHARPNESS * brier, np.inf)
        total = best[:, None] + cost
        starts.append(total.argmin(axis=0))
        best = total.min(axis=0)
    cuts = [len(counts) - 1]
    for start in reversed(starts[1:]):
        cuts.insert(0, int(start[cuts[0]]))
    return float(best[-1]), cuts


def _middles(categories: int) -> FloatArray:
    return (np.arange(categories) + 0.5) / categories


class Pair(NamedTuple):
    """Simulated scores, the probabilities that they stand for, and outcomes drawn from those."""

    coe: FloatArray
    rce: FloatArray
    truth: FloatArray
    correct: FloatArray


def simulated(count: int, generator: np.random.Generator, references: float = 1.0) -> Pair:
    """RCE overstates; where COE is low it says nothing and three cases in ten are right. Few `references`: low COE."""
    coe, rce = generator.beta(references, 1, count), generator.beta(4, 2, count)
    truth = 0.3 + coe * (rce**2 - 0.3)
    return Pair(coe, rce, truth, (generator.random(count) < truth).astype(float))


def measured(references: float = 1.0) -> dict[str, dict[str, float]]:
    """Method → `ece`, `brier`, and `truth`: the mean distance of what it says from the true probability."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    for seed in SEEDS:
        generator = np.random.default_rng(seed)
        known, tested = simulated(LABELS, generator), simulated(TESTED, generator, references)
        for name, method in _fits(known).items():
            said = method.probabilities(tested.coe, tested.rce)
            off = float(np.abs(said - tested.truth).mean())
            found.setdefault(name, []).append((ece(said, tested.correct), brier(said, tested.correct), off))
    return {
        name: dict(zip(("ece", "brier", "truth"), np.mean(figures, axis=0).round(4).tolist(), strict=True))
        for name, figures in found.items()
    }


def print_table(figures: Mapping[str, Mapping[str, Any]], out: Console) -> None:
    table = Table("thresholds", "Brier", "ECE", "off the truth", title="Simulated pair of scores")
    for name, found in figures.items():
        table.add_row(name, *(f"{found[key]:.4f}" for key in ("brier", "ece", "truth")))
    out.print(table)


def _fits(known: Pair) -> dict[str, Thresholds]:
    return {
        OPTIMISED: fit_thresholds(known.coe, known.rce, known.correct),
        OPTIMISED_ALONE: fit_thresholds(known.coe, known.rce, known.correct, transformations=[RCE_ALONE]),
        UNIFORM: _best_uniform(known),
        UNIFORM_ALONE: uniform(RCE_ALONE),
    }


def _best_uniform(known: Pair) -> Thresholds:
    """The transformation that is optimal for bins of equal width, so that the comparison is of the thresholds alone."""
    return min(
        (uniform(transformation) for transformation in CANDIDATES),
        key=lambda each: ece(each.probabilities(known.coe, known.rce), known.correct),
    )
