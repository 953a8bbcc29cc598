"""Logistic curves from score to probability: Platt scaling and beta calibration, under a prior on their slopes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from core.confidence.tally import FloatArray, Tally

NEAREST = 0.01  # of a score to 0 and to 1: beyond it the logarithm of either grows faster than what is known
FLAT = 1e3  # deviation of a slope's prior that says nothing
MAX_STEPS = 50  # of Newton's method, which takes about six
TOLERANCE = 1e-9  # of the objective, in nats

Features = Callable[[FloatArray], FloatArray]  # scores, shape (n,) → columns that rise with them, shape (n, features)


def beta_features(scores: FloatArray) -> FloatArray:
    """The logarithms of s and of 1 / (1 − s), for beta calibration (Kull, Silva Filho and Flach 2017)."""
    inside = np.clip(scores, NEAREST, 1 - NEAREST)
    return np.stack([np.log(inside), -np.log1p(-inside)], axis=1)


def log_odds(scores: FloatArray) -> FloatArray:
    """The logarithm of s / (1 − s), for Platt scaling (Platt 1999) of scores in [0, 1]."""
    return beta_features(scores).sum(axis=1, keepdims=True)


@dataclass(frozen=True, slots=True)
class Prior:
    """Independent normal distributions, one a slope, both shape (features,). The intercept has a flat prior."""

    mean: FloatArray
    deviation: FloatArray


@dataclass(frozen=True, slots=True)
class Curve:
    """A logistic curve that never falls: `slopes`, shape (features,), are at least 0."""

    features: Features
    intercept: float
    slopes: FloatArray

    def at(self, scores: FloatArray) -> FloatArray:
        """Probabilities strictly between 0 and 1, shape (n,)."""
        return _sigmoid(self.intercept + self.features(scores) @ self.slopes)


def fit_curve(tally: Tally, features: Features, prior: Prior) -> Curve:
    """The most probable curve, given at least one label.

    Half a right and half a wrong label are spread over all scores (Jeffreys), so that no share of labels makes it sure.
    A slope that would be negative is left out.
    """
    share = tally.counts / tally.counts.sum()
    right, counts = tally.right + share / 2, tally.counts + share
    columns = np.column_stack([np.ones(len(share)), features(tally.levels)])
    mean, precision = np.r_[0.0, prior.mean], np.r_[0.0, prior.deviation**-2.0]
    free = np.ones(len(mean), bool)
    weights = np.zeros(len(mean))
    while True:
        weights[free] = _maximise(columns[:, free], right, counts, mean[free], precision[free])
        falling = weights < 0
        falling[0] = False
        if not falling.any():
            return Curve(features, float(weights[0]), weights[1:])
        free &= ~falling
        weights[:] = 0.0


def _maximise(
    columns: FloatArray, right: FloatArray, counts: FloatArray, mean: FloatArray, precision: FloatArray
) -> FloatArray:
    """Newton's method on the log posterior, from the flat curve, a step halved until it climbs."""

    def loss(weights: FloatArray) -> float:
        linear = columns @ weights
        return float(counts @ np.logaddexp(0, linear) - right @ linear + precision @ (weights - mean) ** 2 / 2)

    weights = np.zeros(len(mean))
    current = loss(weights)
    for _ in range(MAX_STEPS):
        expected = _sigmoid(columns @ weights)
        gradient = columns.T @ (counts * expected - right) + precision * (weights - mean)
        curvature = (columns.T * (counts * expected * (1 - expected))) @ columns + np.diag(precision)
        step = np.linalg.solve(curvature, gradient)
        while (after := loss(weights - step)) > current + TOLERANCE:
            step = step / 2
        weights = weights - step
        if current - after < TOLERANCE:
            break
        current = after
    return weights


def _sigmoid(values: FloatArray) -> FloatArray:
    return 0.5 * (1 + np.tanh(values / 2))
