"""Confidence intervals of figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import binomtest

from core.confidence.measures import bootstrap

SEED = 7


def bootstrap_interval(values: Sequence[float], seed: int = SEED) -> list[float]:
    """Return the 95 % percentile bootstrap interval of the mean, as [low, high]."""
    return rounded(bootstrap(np.mean, np.asarray(values, float), seed=seed))


def wilson_interval(held: Sequence[bool]) -> list[float]:
    """Return the 95 % Wilson interval of a share, as [low, high]. `held` has at least one element."""
    low, high = binomtest(sum(held), len(held)).proportion_ci(method="wilson")
    return rounded((float(low), float(high)))


def rounded(interval: tuple[float, float]) -> list[float]:
    """Return the interval rounded to four digits."""
    return [round(end, 4) for end in interval]
