"""How far a figure might be off."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import binomtest

from core.confidence.measures import bootstrap

SEED = 7


def bootstrap_interval(values: Sequence[float], seed: int = SEED) -> list[float]:
    """The 95 % percentile bootstrap interval of the mean, as [low, high]."""
    return rounded(bootstrap(np.mean, np.asarray(values, float), seed=seed))


def wilson_interval(held: Sequence[bool]) -> list[float]:
    """The 95 % interval of a share (Wilson 1927), as [low, high]. `held` has at least one member."""
    low, high = binomtest(sum(held), len(held)).proportion_ci(method="wilson")
    return rounded((float(low), float(high)))


def rounded(interval: tuple[float, float]) -> list[float]:
    """As it is written, to four digits."""
    return [round(end, 4) for end in interval]
