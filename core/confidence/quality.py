"""Figures of the badges of one estimator: how good they were, and whether the latest still tell the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.confidence.measures import auroc, brier, ece, ece_by_chance, ece_floor, ece_interval
from core.model.prediction import Drift

LATEST = 2_000  # badges that are looked at
RESAMPLES = 200  # for an interval on a page
RECENT = 200  # latest labelled predictions that are looked at
ENOUGH = 40  # labels below which nothing can be said
DRAWS = 2_000  # of outcomes, as the badges promise them
ALARM_LEVEL = 0.99  # share of those draws whose error lies within the interval: one false alarm in 100 nights


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
