"""Calibration quality of one estimator, as shown on its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.confidence.measures import auroc, brier, ece, ece_floor, ece_interval

LATEST = 2_000  # badges evaluated
RESAMPLES = 200  # for the confidence interval


@dataclass(frozen=True, slots=True)
class Quality:
    """Quality of the `shown` probabilities against their outcomes `correct`, oldest first.

    `ece_low` to `ece_high` is the 95 % interval of `ece`; `ece_floor` is the error that chance alone would cause.
    `auroc` is None if all outcomes are equal.
    """

    shown: tuple[float, ...]
    correct: tuple[bool, ...]
    ece: float
    ece_low: float
    ece_high: float
    ece_floor: float
    brier: float
    auroc: float | None


def measure_quality(shown: Sequence[float], correct: Sequence[bool]) -> Quality | None:
    """Return the quality; None if no badge with a percentage was judged."""
    if not shown:
        return None
    probabilities = np.array(shown[-LATEST:], dtype=np.float64)
    outcomes = np.array(correct[-LATEST:], dtype=np.float64)
    low, high = ece_interval(probabilities, outcomes, RESAMPLES)
    area = auroc(probabilities, outcomes)
    return Quality(
        tuple(shown[-LATEST:]),
        tuple(correct[-LATEST:]),
        ece(probabilities, outcomes),
        low,
        high,
        ece_floor(probabilities),
        brier(probabilities, outcomes),
        None if np.isnan(area) else area,
    )
