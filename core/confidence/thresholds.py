"""Optimal thresholds of confidence categories (LM-PACE, section 4.4, equation 3).

Categories divide [0, 1] evenly, and each says its middle. For a given transformation of the two measures, the best
thresholds are found exactly, by dynamic programming over the cuts between neighbouring scores: the objective is a sum
over categories, so the best last category leaves a smaller problem of the same form. The transformation itself has two
bounded parts and an objective with jumps, so a grid of it is searched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from core.confidence.ensemble import FloatArray, Tally, boundaries, count, distinct
from core.model.badge import Steps, Transformation

CATEGORIES = 10
MAX_CUTS = 100  # maximum number of score levels between which a threshold may lie
SHARPNESS = 1.0  # weight of the Brier score; by equation 3 alone, a single category for all would often be best

Weighting = Callable[[float, FloatArray], FloatArray]  # ω: a category's confidence and counts → its weights


def by_count(_confidence: float, counts: FloatArray) -> FloatArray:
    """Weight by count, which makes equation 3 the expected calibration error."""
    return counts


def fit_thresholds(
    coe: FloatArray,
    rce: FloatArray,
    correct: FloatArray,
    transformations: Sequence[Transformation],
    *,
    weighting: Weighting = by_count,
    categories: int = CATEGORIES,
) -> Steps:
    """Return the transformation and the categories of its score that minimise equation 3.

    All arrays have the shape (n,), n ≥ 1; `correct` is 0 or 1. A category that no score falls into is left out.
    """
    fits = [_fit(each, coe, rce, correct, weighting, middles(categories)) for each in transformations]
    return min(fits, key=lambda fit: fit[0])[1]


def middles(categories: int) -> FloatArray:
    """Return the confidences of so many categories: the middle of each."""
    return (np.arange(categories) + 0.5) / categories


def _fit(
    transformation: Transformation,
    coe: FloatArray,
    rce: FloatArray,
    correct: FloatArray,
    weighting: Weighting,
    confidences: FloatArray,
) -> tuple[float, Steps]:
    scores = transformation.score(coe, rce)
    levels = distinct(np.quantile(scores, np.linspace(0, 1, MAX_CUTS), method="inverted_cdf"))
    objective, cuts = _best_cuts(count(scores, correct, levels), confidences, weighting)
    held = np.diff(cuts, prepend=0) > 0
    bounds = np.r_[0.0, boundaries(levels), 1.0]
    return objective, Steps(tuple(bounds[cuts][held].tolist()), tuple(confidences[held].tolist()), transformation)


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
