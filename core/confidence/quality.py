"""How good the badges of one estimator were, in the figures that its page shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.confidence.measures import auroc, brier, ece, ece_floor, ece_interval

LATEST = 2_000  # badges that are looked at
RESAMPLES = 200  # for an interval on a page


@dataclass(frozen=True, slots=True)
class Quality:
    """Of the `shown` probabilities and what became of them (`correct`), oldest first.

    `ece` with its 95 % interval `ece_low` to `ece_high`, and `ece_floor`, what chance alone would make of it. `auroc` is
    None where all were right or all were wrong.
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
    """None while no badge with a percentage was judged."""
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
