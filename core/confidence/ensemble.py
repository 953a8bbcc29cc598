"""Monotone maps from score to probability, averaged by their likelihood on held-out labels.

A member combines a smooth curve with the empirical shares; the curve's weight is a number of labels. With a weight of 5
the shares soon dominate and the member is a smoothed isotonic regression; with an infinite weight it is the curve
alone. Averaging by held-out likelihood mixes members when labels are few, and selects the best one when they are many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Tally:
    """The numbers of right and wrong labels at each level. `levels` ascend; all arrays have the same length."""

    levels: FloatArray
    right: FloatArray
    wrong: FloatArray

    @property
    def counts(self) -> FloatArray:
        return self.right + self.wrong

    def deal(self, hands: int) -> list[Tally]:
        """Return the labels in `hands` parts with score distributions and accuracies as similar as possible."""
        return [
            Tally(self.levels, _hand(self.right, hand, hands), _hand(self.wrong, hand, hands)) for hand in range(hands)
        ]

    def without(self, part: Tally) -> Tally:
        return Tally(self.levels, self.right - part.right, self.wrong - part.wrong)


def count(scores: FloatArray, correct: FloatArray, levels: FloatArray | None = None) -> Tally:
    """Count every score at the nearest of `levels` (ascending; by default, the distinct scores).

    `correct` is 0 or 1.
    """
    if levels is None:
        levels = distinct(scores)
    nearest = np.searchsorted(boundaries(levels), scores)
    return Tally(
        levels,
        right=np.bincount(nearest, correct, len(levels)).astype(np.float64),
        wrong=np.bincount(nearest, 1 - correct, len(levels)).astype(np.float64),
    )


def distinct(scores: FloatArray) -> FloatArray:
    """Return the distinct scores in ascending order. Differences below a millionth are ignored."""
    return np.unique(scores.round(6))


def boundaries(levels: FloatArray) -> FloatArray:
    """Return the midpoints between neighbouring levels. A score on a midpoint belongs to the lower level."""
    return (levels[1:] + levels[:-1]) / 2


def _hand(counts: FloatArray, hand: int, hands: int) -> FloatArray:
    """Return every `hands`-th label, dealt from the lowest level to the highest."""
    dealt = np.concatenate([[0.0], np.cumsum(counts)])
    return np.diff((dealt + hands - 1 - hand) // hands)


NEAREST = 0.01  # distance of a score to 0 and 1 at which it is clipped, because its logarithms grow without bound
FLAT = 1e3  # deviation of an uninformative prior of a slope
EXACT = 1e-13  # nats a label; a fit that changes less ends

Features = Callable[[FloatArray], FloatArray]  # scores, shape (n,) → columns that rise with them, shape (n, features)


def beta_features(scores: FloatArray) -> FloatArray:
    """Return the logarithms of s and of 1 / (1 − s), for beta calibration (Kull, Silva Filho and Flach 2017)."""
    inside = np.clip(scores, NEAREST, 1 - NEAREST)
    return np.stack([np.log(inside), -np.log1p(-inside)], axis=1)


def log_odds(scores: FloatArray) -> FloatArray:
    """Return the logarithm of s / (1 − s), for Platt scaling (Platt 1999) of scores in [0, 1]."""
    return beta_features(scores).sum(axis=1, keepdims=True)


@dataclass(frozen=True, slots=True)
class Prior:
    """Independent normal distributions, one per slope, both of shape (features,). The intercept has a flat prior."""

    mean: FloatArray
    deviation: FloatArray


@dataclass(frozen=True, slots=True)
class Curve:
    """A logistic curve that never falls: `slopes`, shape (features,), are at least 0."""

    features: Features
    intercept: float
    slopes: FloatArray

    def at(self, scores: FloatArray) -> FloatArray:
        """Return probabilities strictly between 0 and 1, shape (n,)."""
        return _sigmoid(self.intercept + self.features(scores) @ self.slopes)


def fit_curve(tally: Tally, features: Features, prior: Prior) -> Curve:
    """Return the most probable curve, given at least one label.

    Half a right and half a wrong label are spread over all scores (Jeffreys), so that no curve reaches 0 or 1.
    """
    from scipy.optimize import Bounds, minimize

    share = tally.counts / tally.counts.sum()
    right, counts = tally.right + share / 2, tally.counts + share
    columns = np.column_stack([np.ones(len(share)), features(tally.levels)])
    mean, precision = np.r_[0.0, prior.mean], np.r_[0.0, prior.deviation**-2.0]

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        """Return the negative logarithm of the posterior, per label, and its gradient."""
        linear, apart = columns @ weights, weights - mean
        value = counts @ np.logaddexp(0, linear) - right @ linear + precision @ apart**2 / 2
        slope = columns.T @ (counts * _sigmoid(linear) - right) + precision * apart
        return value / counts.sum(), slope / counts.sum()

    bounds = Bounds(np.r_[-np.inf, np.zeros(len(prior.mean))], np.inf)
    # L-BFGS-B ends too early on one of 1,500 tallies, by 0.003 of a probability.
    optimum = minimize(loss, np.zeros(len(mean)), jac=True, method="SLSQP", bounds=bounds, options={"ftol": EXACT})
    return Curve(features, float(optimum.x[0]), optimum.x[1:])


def _sigmoid(values: FloatArray) -> FloatArray:
    return 0.5 * (1 + np.tanh(values / 2))


Scalar = TypeVar("Scalar", np.float32, np.float64)

FOLDS = 5
CELLS = 20  # groups of neighbouring levels with about equally many labels, each with its own share of right ones
PLACES = 9  # decimal places; smaller differences between levels are rounding errors
NO_WEIGHT = 1e-9  # of a level without a label
CURVE_WEIGHTS = np.array([5.0, 20.0, 80.0, np.inf])  # weight of a curve in each cell, in labels

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


def _likelihoods(tally: Tally, held_out: Tally) -> FloatArray:
    """Return the log-likelihood of the held-out labels under each member fitted to those of `tally`, shape (members,)."""
    members = _members(tally)
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
