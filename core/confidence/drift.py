"""Return whether the badges shown of late still tell the truth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.confidence.measures import ece, ece_by_chance
from core.model.prediction import Drift

RECENT = 200  # latest labelled predictions that are looked at
ENOUGH = 40  # labels below which nothing can be said
DRAWS = 2_000  # of outcomes, as the badges promise them
ALARM_LEVEL = 0.99  # share of those draws whose error lies within the interval: one false alarm in 100 nights


def measure_drift(shown: Sequence[float], correct: Sequence[bool], seed: int = 0) -> Drift | None:
    """Compare the badges with their outcomes, oldest first; None while there are fewer than ENOUGH.

    The limit is a quantile of the error that outcomes have when drawn with the very probabilities that were shown:
    honest badges leave it once in a hundred times, however few or many they are.
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
