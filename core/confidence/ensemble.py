"""Monotone maps from score to probability, averaged by their likelihood on held-out labels.

A member combines a smooth curve with the empirical shares; the curve's weight is a number of labels. With a weight of 5
the shares soon dominate and the member is a smoothed isotonic regression; with an infinite weight it is the curve
alone. Averaging by held-out likelihood mixes members when labels are few, and selects the best one when they are many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from core.confidence.curves import Prior, beta_features, fit_curve
from core.confidence.tally import FloatArray, Tally

Scalar = TypeVar("Scalar", np.float32, np.float64)

FOLDS = 5
CELLS = 20  # groups of neighbouring levels, of about equally many labels, that have a share of right ones of their own
PLACES = 9  # beyond which a difference between two levels is an error of rounding
NO_WEIGHT = 1e-9  # of a level without a label
CURVE_WEIGHTS = np.array([5.0, 20.0, 80.0, np.inf])  # labels that a curve counts for in each cell

# Prior slopes of ½ halve the log-odds of the scores, because stated confidences are mostly too high.
SLOPES = Prior(mean=np.full(2, 0.5), deviation=np.full(2, 0.5))
NO_SLOPES = Prior(mean=np.empty(0), deviation=np.empty(0))


@dataclass(frozen=True, slots=True)
class Fitted:
    """The fitted map.

    `probabilities` ascend with the levels of the tally, strictly between 0 and 1. `evidence` is the logarithm of the
    members' mean likelihood on the held-out labels.
    """

    probabilities: FloatArray
    evidence: float


def fit_ensemble(tally: Tally) -> Fitted:
    """Fit the ensemble to at least three labels. The result depends only on their counts at each level."""
    held_out = np.sum([_likelihoods(tally.without(part), part) for part in tally.deal(FOLDS)], axis=0)
    members = np.array([ascending(member, tally.counts) for member in _members(tally)])
    best = held_out.max()
    evidence = best + np.log(np.exp(held_out - best).mean())
    return Fitted((softmax(held_out) @ members).round(PLACES), float(evidence))


def _likelihoods(known: Tally, held_out: Tally) -> FloatArray:
    """Return the log-likelihood of the held-out labels under each member fitted to the known ones, shape (members,)."""
    members = _members(known)
    return np.log(members) @ held_out.right + np.log1p(-members) @ held_out.wrong


def _members(tally: Tally) -> FloatArray:
    """Return each member's probability at each level, shape (members, levels), clipped by the number of labels."""
    counts = tally.counts
    total = counts.sum()
    middle = np.cumsum(counts) - counts / 2  # labels below a level plus half of those on it
    cells = np.minimum(middle * CELLS // total, CELLS - 1).astype(int)
    seen = np.bincount(cells, counts, CELLS)
    members: list[FloatArray] = []
    for expected in _curves(tally, ranks=(middle + 0.5) / (total + 1)):
        excess = np.bincount(cells, tally.right - counts * expected, CELLS)
        members.append(expected + (excess / (seen + CURVE_WEIGHTS[:, None]))[:, cells])
    surest = 0.5 / (total + 1)
    return np.clip(np.concatenate(members), surest, 1 - surest)


def _curves(tally: Tally, ranks: FloatArray) -> tuple[FloatArray, ...]:
    """Return the base rate, beta calibration of the scores, and beta calibration of their ranks."""
    ranked = Tally(ranks, tally.right, tally.wrong)
    return (
        fit_curve(tally, _nothing, NO_SLOPES).at(tally.levels),
        fit_curve(tally, beta_features, SLOPES).at(tally.levels),
        fit_curve(ranked, beta_features, SLOPES).at(ranks),
    )


def _nothing(scores: FloatArray) -> FloatArray:
    return np.empty((len(scores), 0))


def ascending(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the ascending values nearest to `values` in weighted squares; one without weight follows its neighbours."""
    from scipy.optimize import isotonic_regression

    return isotonic_regression(values, weights=np.maximum(weights, NO_WEIGHT)).x


def softmax(scores: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return shares proportional to the exponentials of the scores; they add up to 1 over the last axis."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)
