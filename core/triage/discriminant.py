"""Probabilistic linear discriminant analysis (Ioffe 2006): how likely an incident stands among those of each team.

What a few incidents tell of a team is uncertain, which regressions overlook. Here such a team is expected nearer to the
mean of all, and its next incident further from where it is expected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from core.confidence.softmax import softmax
from core.triage.parts import PARTS, parts_of

SHRINKAGE = 1.0  # of the spread within teams towards an even one, in its mean variances
MAX_AXES = 200
LEAST_SPREAD = 1e-4  # of the means of teams along an axis, in spreads within teams
SCALES = (0.02, 2.0)  # of the log odds: the dimensions of a vector are less independent than supposed

FloatArray = NDArray[np.float64]
NarrowArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Discriminant:
    """Log odds of each team: a parabola along each of the axes on which teams differ most.

    `axes` has shape (dimensions, axes), `centre` (axes,), `offsets` (teams,), `slopes` and `bends` (teams, axes).
    """

    axes: NarrowArray
    centre: NarrowArray
    offsets: NarrowArray
    slopes: NarrowArray
    bends: NarrowArray

    def probabilities(self, vectors: NarrowArray) -> FloatArray:
        """Of each team, the last axis of the result, for vectors of shape (…, dimensions)."""
        return softmax(self.log_odds(vectors))

    def log_odds(self, vectors: NarrowArray) -> FloatArray:
        """Up to a constant of each vector, of the same shape."""
        placed = vectors @ self.axes - self.centre
        return (self.offsets + placed @ self.slopes.T - placed**2 @ self.bends.T).astype(np.float64)

    def after(self, directions: NarrowArray) -> Self:
        """The one of vectors that, times `directions`, are those of this one."""
        return replace(self, axes=directions @ self.axes)

    def scaled(self, scale: float) -> Self:
        """The one whose log odds are `scale` times these."""
        offsets, slopes, bends = (np.float32(scale) * each for each in (self.offsets, self.slopes, self.bends))
        return replace(self, offsets=offsets, slopes=slopes, bends=bends)


def discriminant(
    vectors: NarrowArray, owners: NDArray[np.int32], teams: int, same: Sequence[NDArray[np.int64]]
) -> tuple[Discriminant, FloatArray]:
    """The analysis of all incidents, and its probabilities for each by what was found without its part.

    `owners[i]` is the place of the team that owns incident `i`; the blocks of `same` say the same. The result's shape is
    (incidents, teams). What is left out says how far the log odds are to be trusted.
    """
    part = parts_of(same, len(owners))
    left_out = np.empty((len(owners), teams))
    for number in range(PARTS):
        seen = part != number
        left_out[~seen] = _fitted(vectors[seen], owners[seen], teams).log_odds(vectors[~seen])
    scale = _best_scale(left_out, owners)
    return _fitted(vectors, owners, teams).scaled(scale), softmax(scale * left_out)


def _fitted(vectors: NarrowArray, owners: NDArray[np.int32], teams: int) -> Discriminant:
    """Along the axes incidents vary by 1 around the mean of their team, and the means of teams by `spread`."""
    counts = np.bincount(owners, minlength=teams)
    centre = vectors.mean(axis=0, dtype=np.float64)
    placed = vectors - centre
    means = np.zeros((teams, vectors.shape[1]))
    np.add.at(means, owners, placed)
    means /= np.maximum(counts, 1)[:, np.newaxis]
    axes, spread = _axes(placed, means, owners, counts)
    known = counts[:, np.newaxis] * spread / (counts[:, np.newaxis] * spread + 1)
    expected = known * (means @ axes)
    precisions = 1 / (1 + (1 - known) * spread)
    offsets = np.log(counts + 1) + (np.log(precisions) - precisions * expected**2).sum(axis=1) / 2
    found = (axes, centre @ axes, offsets, precisions * expected, precisions / 2)
    narrow = (each.astype(np.float32) for each in found)
    return Discriminant(*narrow)


def _axes(
    placed: FloatArray, means: FloatArray, owners: NDArray[np.int32], counts: NDArray[np.int64]
) -> tuple[FloatArray, FloatArray]:
    """The axes, shape (dimensions, axes), and the spread of the means of teams along each."""
    repeated = counts[owners] > 1  # a team's only incident says nothing of the spread within
    within = (placed - means[owners])[repeated]
    inner = within.T @ within / max(1, len(within) - np.count_nonzero(counts > 1))
    inner += (SHRINKAGE * np.trace(inner) / len(inner) + 1e-6) * np.eye(len(inner))
    outer = (means * counts[:, np.newaxis]).T @ means / len(owners)
    variances, directions = np.linalg.eigh(inner)
    even = directions / np.sqrt(variances)
    spread, turned = np.linalg.eigh(even.T @ outer @ even)
    kept = min(MAX_AXES, np.count_nonzero(counts))
    return even @ turned[:, -kept:], np.maximum(spread[-kept:], LEAST_SPREAD)


def _best_scale(log_odds: FloatArray, owners: NDArray[np.int32]) -> float:
    """By which the log odds of the owners become most likely."""
    from scipy.optimize import minimize_scalar

    rows = np.arange(len(owners))

    def loss(scale: float) -> float:
        return float(-np.log(softmax(scale * log_odds)[rows, owners] + 1e-300).mean())

    return float(minimize_scalar(loss, bounds=SCALES, method="bounded").x)
