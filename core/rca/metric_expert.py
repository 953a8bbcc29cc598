"""Find the metrics that left their usual range or began to creep, with the time and the size of the movement."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from math import exp

import numpy as np
from numpy.typing import NDArray

from core.knowledge.terms import terms
from core.model.explanation import Evidence, EvidenceKind
from core.ports import Series
from core.rca.signals import Signal

MAD_TO_SIGMA = 1.4826  # of a normal distribution
SIGMAS = 6.0  # from the baseline's median; beyond, a value is unusual
MARGIN = 0.2  # of the baseline's range, by which a value must also be outside of it
MIN_RELATIVE = 0.2  # of the baseline's median; a smaller shift is drift
RUN = 6  # points checked after the first unusual one
RUN_SHARE = 0.7  # of these points that must also be unusual
MIN_POINTS = 2  # unusual points of a movement
MIN_BASELINE = 5  # points of a baseline
FULL_STRENGTH = 0.95  # limit of the strength for very large movements
CREEP_POINTS = 40  # required to search for a slow rise
CREEP_BREAKS = 40  # candidate start times of a slow rise
CREEP_RISE = 0.3  # of the base level that the rise must reach
CREEP_FIT = 0.75  # of the variance that the rise must explain
CREEP_BETTER = 0.7  # maximum squared error, relative to a straight line and to a step
CUMULATIVE = ("_total", "_count", "_sum")  # OpenMetrics suffixes of counters


def metric_signals(series: Sequence[Series], suspect: datetime) -> list[Signal]:
    """Return the metrics that moved at or after `suspect` and did not return, or that have risen slowly since before."""
    jumps = [signal for one in series if (signal := _signal(one, suspect)) is not None]
    moved = {(signal.service, signal.subject): signal for signal in jumps}
    for one in series:
        creep = _creep(one, suspect)
        if creep is not None:
            moved[one.service, one.metric] = creep
    return list(moved.values())


def _creep(series: Series, suspect: datetime) -> Signal | None:
    """Return a rise that began before `suspect` and continues: level, then slope, fitted by least squares.

    It dates from the first value outside of its own baseline. Only measured values are named.
    """
    values = level(series)
    seconds = np.array([at.timestamp() for at in series.times])
    measured = ~np.isnan(values)
    values, seconds = values[measured], seconds[measured]
    if values.size < CREEP_POINTS:
        return None
    breaks = seconds[0] + (suspect.timestamp() - seconds[0]) * np.arange(CREEP_BREAKS, dtype=np.float64) / CREEP_BREAKS
    total = float(((values - values.mean()) ** 2).sum())
    if total <= 0 or breaks[-1] <= seconds[0]:
        return None
    hinges = np.maximum(0.0, seconds - breaks[:, None])
    errors, slopes = _fits(values, hinges)
    steps, _ = _fits(
        values, (seconds >= seconds[1 :: max(1, seconds.size // CREEP_BREAKS)][:, None]).astype(np.float64)
    )
    best = int(np.argmin(errors))
    error, slope = float(errors[best]), float(slopes[best])
    rise = slope * float(hinges[best][-1])
    base = float(values.mean() - slope * hinges[best].mean())
    noise = (error / values.size) ** 0.5
    if (
        best == 0  # it has risen from the start
        or error > (1 - CREEP_FIT) * total
        or error > CREEP_BETTER * min(float(steps.min()), float(errors[0]))
        or rise < max(CREEP_RISE * abs(base), SIGMAS / 2 * noise)
    ):
        return None
    before, after = values[seconds < breaks[best]], values[seconds >= breaks[best]]
    start = _first_sustained(after > before.max())
    if start is None:
        return None
    since = datetime.fromtimestamp(float(seconds[seconds >= breaks[best]][start]), series.times[0].tzinfo)
    change = f"from {_number(_middle(before))} to {_number(float(after[start:].max()))}"
    return Signal(
        service=series.service,
        since=since,
        strength=FULL_STRENGTH * (1 - exp(-rise / max(noise, 1e-9) / SIGMAS)),
        what=f"{series.metric} began to creep up {change}",
        terms=frozenset(terms(series.metric)),
        evidence=Evidence(EvidenceKind.METRIC, f"metrics of {series.service}", f"{series.metric} {change}", since),
        subject=series.metric,
        creeps=True,
        rises=True,
    )


def _fits(values: NDArray[np.float64], rises: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the squared error and the slope of a fit of `values` to each row of `rises`, shape (rises, values)."""
    centred = rises - rises.mean(axis=1, keepdims=True)
    spread = np.maximum((centred**2).sum(axis=1), 1e-12)
    slopes = centred @ values / spread
    total = float(((values - values.mean()) ** 2).sum())
    return total - slopes**2 * spread, slopes


def _signal(series: Series, suspect: datetime) -> Signal | None:
    values = level(series)
    times = np.array([at.timestamp() for at in series.times])
    measured = ~np.isnan(values)
    baseline = values[measured & (times < suspect.timestamp())]
    after = np.flatnonzero(measured & (times >= suspect.timestamp()))
    if baseline.size < MIN_BASELINE or after.size < MIN_POINTS:
        return None
    median = _middle(baseline)
    sigma = MAD_TO_SIGMA * float(np.median(np.abs(baseline - median)))
    low, high = float(baseline.min()), float(baseline.max())
    distance = max(SIGMAS * sigma, MIN_RELATIVE * abs(median), 1e-9)
    margin = MARGIN * (high - low)
    unusual_high = values[after] > max(median + distance, high + margin)
    unusual_low = values[after] < min(median - distance, low - margin)
    for unusual in (unusual_high, unusual_low):
        start = _first_sustained(unusual)
        if start is not None:
            return _moved(series, after, unusual, start, values, median, sigma or distance / SIGMAS)
    return None


def level(series: Series) -> NDArray[np.float64]:
    """Return the values of a gauge, or the increments of a counter, with NaN first."""
    values = np.array(series.values, np.float64)
    if series.metric.split("{", maxsplit=1)[0].endswith(CUMULATIVE) and _never_falls(values):
        return np.concatenate(([np.nan], np.diff(values)))
    return values


def _middle(values: NDArray[np.float64]) -> float:
    """Return the median, as a value that was measured."""
    return float(np.quantile(values, 0.5, method="inverted_cdf"))


def _never_falls(values: NDArray[np.float64]) -> bool:
    steps = np.diff(values[~np.isnan(values)])
    return steps.size > 0 and bool((steps >= 0).all())


def _first_sustained(unusual: NDArray[np.bool_]) -> int | None:
    for index in np.flatnonzero(unusual):
        run = unusual[index : index + RUN]
        if run.size >= MIN_POINTS and run.mean() >= RUN_SHARE:
            return int(index)
    return None


def _moved(
    series: Series,
    after: NDArray[np.intp],
    unusual: NDArray[np.bool_],
    start: int,
    values: NDArray[np.float64],
    median: float,
    sigma: float,
) -> Signal:
    moved = values[after][start:][unusual[start:]]
    extreme = float(moved[np.argmax(np.abs(moved - median))])
    since = series.times[int(after[start])]
    sigmas = abs(float(np.median(moved)) - median) / sigma
    change = f"from {_number(median)} to {_number(extreme)}"
    return Signal(
        service=series.service,
        since=since,
        strength=FULL_STRENGTH * (1 - exp(-sigmas / SIGMAS)),
        what=f"{series.metric} {'rose' if extreme > median else 'fell'} {change}",
        terms=frozenset(terms(series.metric)),
        evidence=Evidence(EvidenceKind.METRIC, f"metrics of {series.service}", f"{series.metric} {change}", since),
        subject=series.metric,
        rises=extreme > median,
    )


def _number(value: float) -> str:
    """Return the number with three significant digits and without an exponent."""
    return f"{value:.3g}" if abs(value) < 1_000 else f"{value:.0f}"
