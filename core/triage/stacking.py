"""How much each signal counts, learned from incidents that were left out (stacked generalisation, Wolpert 1992)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.confidence.softmax import softmax

FloatArray = NDArray[np.float64]

KNOTS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9)  # of a score, where its slope may change
SOFT = 0.01  # score below which its logarithm flattens out
FLOOR = 0.003  # of a share, the same
PENALTY = 0.5  # nats, on the squared weights of standardised features


@dataclass(frozen=True, slots=True)
class Stack:
    """A conditional logit: the weights are the same for every team, so that a new team needs no fit."""

    centre: FloatArray
    weights: FloatArray

    def probabilities(self, signals: FloatArray, log_counts: FloatArray, documents: FloatArray) -> FloatArray:
        """Over the teams, the last axis of the result.

        `signals` has shape (…, teams, signals); `log_counts` (…, teams), the logarithms of 1 + each team's number of past
        incidents; `documents` (…, teams), each team's share of what all team documents say of the incident.
        """
        return softmax((_features(signals, log_counts, documents) - self.centre) @ self.weights)


def fit_stack(signals: FloatArray, log_counts: FloatArray, documents: FloatArray, owners: NDArray[np.int32]) -> Stack:
    """The stack of most likelihood; `owners[i]` is the place of the team that owns incident `i`."""
    from scipy.optimize import minimize

    features = _features(signals, log_counts, documents)
    centre, scale = features.mean(axis=(0, 1)), features.std(axis=(0, 1)) + 1e-9
    flat = ((features - centre) / scale).reshape(-1, features.shape[2])
    incidents, teams = log_counts.shape
    right = np.flatnonzero(np.eye(teams)[owners])

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        probabilities = softmax((flat @ weights).reshape(incidents, teams)).ravel()
        value = -np.log(probabilities[right] + 1e-300).mean() + PENALTY * weights @ weights / incidents
        probabilities[right] -= 1
        return float(value), (flat.T @ probabilities + 2 * PENALTY * weights) / incidents

    found = minimize(loss, np.zeros(flat.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 300}).x
    return Stack(centre, found / scale)


def _features(signals: FloatArray, log_counts: FloatArray, documents: FloatArray) -> FloatArray:
    """Every signal as a line that may bend at the knots, and as a logarithm."""
    columns = [log_counts, documents, np.log(documents + FLOOR)]
    for number in range(signals.shape[-1]):
        score = signals[..., number]
        columns += [score, np.log(SOFT * np.logaddexp(0, score / SOFT) + 1e-6)]
        columns += [np.maximum(0, score - knot) for knot in KNOTS]
    return np.stack(columns, axis=-1)
