"""How far a figure might be off."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

SEED = 7
RESAMPLES = 1_000


def bootstrap_interval(values: Sequence[float], seed: int = SEED) -> list[float]:
    """The 95 % percentile bootstrap interval of the mean, as [low, high]."""
    array = np.asarray(values, float)
    chosen = np.random.default_rng(seed).integers(0, array.size, (RESAMPLES, array.size))
    low, high = np.percentile(array[chosen].mean(axis=1), [2.5, 97.5])
    return [round(float(low), 4), round(float(high), 4)]
