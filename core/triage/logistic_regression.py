"""Multinomial logistic regression: a team's share of the incidents that stand where an incident stands.

It errs elsewhere than the ridge regressions do, as it spends nothing on incidents that are clear already. Incidents stand
on the main axes of their likeness, found by random projection (Halko et al. 2011), and where an embedding model puts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.confidence.softmax import softmax
from core.triage.embeddings import Vector
from core.triage.parts import PARTS, parts_of

AXES = 400  # of the likeness
SPARE_AXES = 50  # that are projected to, so that the others are found well
WORDS = 2.6  # scale of the coordinates on the axes: with it, the penalty says how much they may count
MEANING = 2.0  # the same of the coordinates of the vectors
PENALTY = 0.5  # nats, on the squared weights
STEPS = 70  # of the optimiser, at most
ALONE = 1.01  # likeness along an axis up to which one incident is enough: to itself it is 1
SEED = 7

FloatArray = NDArray[np.float64]
NarrowArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class LogisticRegression:
    """Log odds of each team: `intercepts` (teams,), `duals` (past incidents, teams) by likeness, and `weights` by vector.

    `weights` has shape (dimensions, teams); without an embedding model there are no dimensions.
    """

    intercepts: NarrowArray
    duals: NarrowArray
    weights: NarrowArray

    def probabilities(self, likeness: NarrowArray, vector: Vector | None = None) -> FloatArray:
        """Of each team, shape (teams,), for an incident of this likeness with the past ones."""
        scores = self.intercepts + likeness @ self.duals
        return softmax((scores if vector is None else scores + vector @ self.weights).astype(np.float64))


@dataclass(frozen=True, slots=True)
class MainAxes:
    """`likeness @ directions` are the coordinates of incidents; `coordinates` are those of the past ones."""

    directions: NarrowArray
    coordinates: NarrowArray

    @classmethod
    def of(cls, likeness: NarrowArray) -> MainAxes:
        """Those on which a positive semidefinite `likeness` of past incidents differs most, at most AXES."""
        from scipy.linalg import eigh

        size = len(likeness)
        start = np.random.default_rng(SEED).standard_normal((size, min(AXES + SPARE_AXES, size)), np.float32)
        basis = np.linalg.qr(likeness @ start)[0]
        basis = np.linalg.qr(likeness @ basis)[0]
        values, vectors = eigh(basis.T @ likeness @ basis)
        kept = np.flatnonzero(values > values[-1] * 1e-5)[-AXES:]
        directions = (basis @ vectors[:, kept] / np.sqrt(values[kept])).astype(np.float32)
        return cls(directions, likeness @ directions)

    @property
    def shared(self) -> NarrowArray:
        """The directions in which incidents are like each other; in the rest, each is mostly like itself."""
        likeness = (self.coordinates**2).sum(axis=0)
        return self.directions[:, (likeness > ALONE) | (likeness == likeness.max())]


def logistic_regression(
    axes: MainAxes,
    owners: NDArray[np.int32],
    teams: int,
    same: Sequence[NDArray[np.int64]],
    vectors: NarrowArray | None = None,
) -> tuple[LogisticRegression, FloatArray]:
    """The regression, and its probabilities for the past incidents by weights that were fitted without their part.

    `owners[i]` is the place of the team that owns incident `i`; the blocks of `same` say the same. The regression is the
    mean of those of all parts; the result's shape is (incidents, teams).
    """
    coordinates = [WORDS * axes.coordinates, *([] if vectors is None else [MEANING * vectors])]
    features = np.concatenate(coordinates, axis=1)
    centre = features.mean(axis=0)
    features -= centre
    part = parts_of(same, len(owners))
    left_out = np.empty((len(owners), teams))
    fits: list[NarrowArray] = []
    for number in range(PARTS):
        seen = part != number
        fits.append(_fitted(features[seen], owners[seen], teams))
        left_out[~seen] = softmax(fits[-1][0] + features[~seen] @ fits[-1][1:])
    mean: NarrowArray = np.stack(fits).mean(axis=0)
    end = 1 + axes.coordinates.shape[1]
    duals = WORDS * (axes.directions @ mean[1:end])
    return LogisticRegression(mean[0] - centre @ mean[1:], duals, MEANING * mean[end:]), left_out


def _fitted(features: NarrowArray, owners: NDArray[np.int32], teams: int) -> NarrowArray:
    """The intercepts above the weights of most likelihood with their penalty, shape (1 + features, teams)."""
    from scipy.optimize import minimize

    incidents, width = features.shape
    start = np.zeros((1 + width, teams))
    start[0] = np.log((np.bincount(owners, minlength=teams) + 1) / (incidents + teams))
    right = np.eye(teams, dtype=bool)[owners]

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        weights = flat.reshape(start.shape)
        probabilities = softmax(weights[0] + features @ weights[1:].astype(np.float32))
        value = -np.log(probabilities[right] + 1e-300).sum() + PENALTY * (weights[1:] ** 2).sum()
        probabilities[right] -= 1
        slopes = features.T @ probabilities.astype(np.float32) + 2 * PENALTY * weights[1:]
        gradient = np.concatenate([probabilities.sum(axis=0, keepdims=True), slopes])
        return float(value) / incidents, gradient.ravel() / incidents

    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x
    return found.reshape(start.shape).astype(np.float32)
