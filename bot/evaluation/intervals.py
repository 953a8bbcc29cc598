"""How far a figure might be off."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.confidence.measures import bootstrap

SEED = 7


def bootstrap_interval(values: Sequence[float], seed: int = SEED) -> list[float]:
    """The 95 % percentile bootstrap interval of the mean, as [low, high]."""
    return rounded(bootstrap(np.mean, np.asarray(values, float), seed=seed))


def rounded(interval: tuple[float, float]) -> list[float]:
    """As it is written, to four digits."""
    return [round(end, 4) for end in interval]
