"""Logistic curves from score to probability: Platt scaling and beta calibration, with a prior on the slopes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.confidence.tally import FloatArray, Tally

NEAREST = 0.01  # of a score to 0 and to 1: beyond it the logarithm of either grows faster than what is known
FLAT = 1e3  # deviation of a slope's prior that says nothing
EXACT = {"ftol": 1e-13, "gtol": 1e-7}

Features = Callable[[FloatArray], FloatArray]  # scores, shape (n,) → non-decreasing features, shape (n, features)


def beta_features(scores: FloatArray) -> FloatArray:
    """Return log s and −log(1 − s), for beta calibration (Kull, Silva Filho and Flach 2017)."""
    inside = np.clip(scores, NEAREST, 1 - NEAREST)
    return np.stack([np.log(inside), -np.log1p(-inside)], axis=1)


def log_odds(scores: FloatArray) -> FloatArray:
    """Return log(s / (1 − s)), for Platt scaling (Platt 1999) of scores in [0, 1]."""
    return beta_features(scores).sum(axis=1, keepdims=True)


@dataclass(frozen=True, slots=True)
class Prior:
    """Independent normal priors of the slopes, both of shape (features,). The intercept has a flat prior."""

    mean: FloatArray
    deviation: FloatArray


@dataclass(frozen=True, slots=True)
class Curve:
    """A non-decreasing logistic curve: `slopes`, shape (features,), are at least 0."""

    features: Features
    intercept: float
    slopes: FloatArray

    def at(self, scores: FloatArray) -> FloatArray:
        """Return probabilities strictly between 0 and 1, shape (n,)."""
        return _sigmoid(self.intercept + self.features(scores) @ self.slopes)


def fit_curve(tally: Tally, features: Features, prior: Prior) -> Curve:
    """Return the most probable curve, given at least one label.

    Half a right and half a wrong label are spread over all scores (Jeffreys), so that no share of labels makes it sure.
    """
    from scipy.optimize import minimize

    share = tally.counts / tally.counts.sum()
    right, counts = tally.right + share / 2, tally.counts + share
    columns = np.column_stack([np.ones(len(share)), features(tally.levels)])
    mean, precision = np.r_[0.0, prior.mean], np.r_[0.0, prior.deviation**-2.0]

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        linear, off = columns @ weights, weights - mean
        value = counts @ np.logaddexp(0, linear) - right @ linear + precision @ off**2 / 2
        return float(value), columns.T @ (counts * _sigmoid(linear) - right) + precision * off

    bounds = [(None, None), *[(0.0, None)] * (len(mean) - 1)]
    options: Any = EXACT
    found: Any = minimize(loss, np.zeros(len(mean)), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    weights: FloatArray = found.x
    return Curve(features, float(weights[0]), weights[1:])


def _sigmoid(values: FloatArray) -> FloatArray:
    return 0.5 * (1 + np.tanh(values / 2))
