"""Detection of calibration drift in recent badges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.confidence.measures import ece, ece_by_chance

RECENT = 200  # latest labelled predictions tested
ENOUGH = 40  # minimum number of labels
DRAWS = 2_000  # simulated sets of outcomes
ALARM_LEVEL = 0.99  # quantile of the simulated errors: one false alarm in 100 nights


@dataclass(frozen=True, slots=True)
class Drift:
    """The result of a drift test.

    `error` is the expected calibration error of the recent badges, and `limit` the largest error that chance explains.
    `promised` is the mean probability shown, and `kept` the share that was right.
    """

    error: float
    limit: float
    promised: float
    kept: float
    outcomes: int

    @property
    def alarming(self) -> bool:
        return self.error > self.limit


def measure_drift(shown: Sequence[float], correct: Sequence[bool], seed: int = 0) -> Drift | None:
    """Compare badges with their outcomes, oldest first. Returns None for fewer than ENOUGH.

    The limit is a quantile of the error of outcomes simulated from the shown probabilities, so calibrated badges exceed
    it once in a hundred tests, whatever their number.
    """
    if len(shown) < ENOUGH:
        return None
    probabilities = np.array(shown[-RECENT:], dtype=np.float64)
    outcomes = np.array(correct[-RECENT:], dtype=np.float64)
    return Drift(
        ece(probabilities, outcomes),
        float(np.quantile(ece_by_chance(probabilities, DRAWS, seed), ALARM_LEVEL)),
        float(probabilities.mean()),
        float(outcomes.mean()),
        len(outcomes),
    )
