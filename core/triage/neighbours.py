"""What the past incidents that an incident is like say for their owners."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def neighbour_signals(
    likeness: NDArray[np.floating], owners: NDArray[np.int32], teams: int, powers: Sequence[int]
) -> list[FloatArray]:
    """Shares of votes that weigh as a power of the likeness, for each of `powers`, and the likeness of a team's nearest.

    `likeness` of at least 0 has shape (incidents, past incidents), every signal (incidents, teams).
    """
    found: list[FloatArray] = []
    for power in powers:
        votes = np.stack([np.bincount(owners, row.astype(np.float64) ** power, teams) for row in likeness])
        found.append(votes / (votes.sum(axis=1, keepdims=True) + 1e-9))
    by_owner = np.argsort(owners, kind="stable")
    owning, first = np.unique(owners[by_owner], return_index=True)
    nearest = np.zeros((len(likeness), teams))
    nearest[:, owning] = np.maximum.reduceat(likeness[:, by_owner], first, axis=1)
    return [*found, nearest]
