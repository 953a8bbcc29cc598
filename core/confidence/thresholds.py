"""The mapping of LM-PACE: optimal thresholds of π(c, s; θ) for fixed confidence categories (section 4.4, equation 3).

For a given θ, the best thresholds are found exactly by dynamic programming over the cuts between neighbouring scores,
because the objective is a sum over categories. θ has two bounded components and a discontinuous objective, so it is
found by grid search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from core.confidence.tally import FloatArray, Tally, boundaries, count, distinct
from core.confidence.transformation import CANDIDATES, Transformation

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
