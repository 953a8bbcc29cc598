"""Measures of calibration and discrimination.

`probabilities` are in [0, 1] and `correct` is 0 or 1; both have shape (n,), n ≥ 1. Results are fractions in [0, 1]
unless stated otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.confidence.tally import FloatArray

BINS = 10
FLOOR_DRAWS = 20  # simulated outcomes per set of probabilities
RESAMPLES = 1_000
SEED = 7
PERCENTILES = (2.5, 97.5)  # of a 95 % interval
NORMAL_95 = 1.96  # half the width of a normal 95 % interval, in standard deviations

Edges = Callable[[FloatArray, int], FloatArray]  # probabilities, number of bins → ascending inner edges
Measure = Callable[..., float]  # columns of one length → figure


def equal_width(_probabilities: FloatArray, bins: int = BINS) -> FloatArray:
    """Return the inner edges of equally wide bins."""
    return np.arange(1, bins) / bins


def equal_mass(probabilities: FloatArray, bins: int = BINS) -> FloatArray:
    """Return the inner edges of bins with about equally many predictions. Ties stay together, so bins may be fewer."""
    return np.unique(np.quantile(probabilities, np.arange(1, bins) / bins, method="inverted_cdf"))


@dataclass(frozen=True, slots=True)
class Reliability:
    """The non-empty bins of a reliability diagram, in ascending order. A bin includes its upper edge.

    All arrays have the same length: `counts` of predictions, their mean probability `confidence`, their share of right
    ones `accuracy`, and the bin's upper edge `upper`.
    """

    counts: FloatArray
    confidence: FloatArray
    accuracy: FloatArray
    upper: FloatArray

    @property
    def interval(self) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper 95 % confidence bounds of each bin's accuracy (Wilson 1927)."""
        spread = NORMAL_95**2 / self.counts
        centre = (self.accuracy + spread / 2) / (1 + spread)
        variance = self.accuracy * (1 - self.accuracy) / self.counts + spread / self.counts / 4
        half = NORMAL_95 * np.sqrt(variance) / (1 + spread)
        return centre - half, centre + half


def reliability(
    probabilities: FloatArray, correct: FloatArray, bins: int = BINS, edges: Edges = equal_width
) -> Reliability:
    """Return the data of a reliability diagram."""
    inner = edges(probabilities, bins)
    bin_of = np.searchsorted(inner, probabilities)
    counts = np.bincount(bin_of, minlength=len(inner) + 1).astype(float)
    held = counts > 0
    confidence = np.bincount(bin_of, probabilities, len(counts))[held] / counts[held]
    accuracy = np.bincount(bin_of, correct, len(counts))[held] / counts[held]
    return Reliability(counts[held], confidence, accuracy, np.append(inner, 1.0)[held])


def ece(probabilities: FloatArray, correct: FloatArray, bins: int = BINS, edges: Edges = equal_width) -> float:
    """Return the expected calibration error (LM-PACE, equation 2)."""
    found = reliability(probabilities, correct, bins, edges)
    return float(found.counts @ np.abs(found.accuracy - found.confidence) / len(correct))


def max_calibration_error(
    probabilities: FloatArray, correct: FloatArray, bins: int = BINS, edges: Edges = equal_width
) -> float:
    """Return the calibration error of the worst bin, whatever its size."""
    found = reliability(probabilities, correct, bins, edges)
    return float(np.abs(found.accuracy - found.confidence).max())


def ece_floor(
    probabilities: FloatArray, bins: int = BINS, edges: Edges = equal_width, draws: int = FLOOR_DRAWS, seed: int = SEED
) -> float:
    """Return the mean ECE of perfectly calibrated probabilities, which chance raises above 0 for few predictions."""
    return float(ece_by_chance(probabilities, draws, seed, bins, edges).mean())


def ece_by_chance(
    probabilities: FloatArray, draws: int, seed: int = SEED, bins: int = BINS, edges: Edges = equal_width
) -> FloatArray:
    """Return the ECE of each of `draws` sets of outcomes simulated from the probabilities."""
    outcomes = np.random.default_rng(seed).random((draws, len(probabilities))) < probabilities
    return np.array([ece(probabilities, drawn.astype(float), bins, edges) for drawn in outcomes])


def ece_interval(
    probabilities: FloatArray, correct: FloatArray, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[float, float]:
    """Return the 95 % interval of the ECE for the population.

    A finite sample raises the error, and resampling raises it again, so plain percentiles would almost never contain
    the true error of calibrated probabilities. The second increase is subtracted from both ends, and the first from the
    lower end, which is 0 if calibrated probabilities would show such an error too.
    """
    error = ece(probabilities, correct)
    errors = _resampled(ece, (probabilities, correct), resamples, seed)
    raised = max(0.0, float(errors.mean()) - error)
    low, high = np.percentile(errors, PERCENTILES)
    is_chance = error <= np.percentile(ece_by_chance(probabilities, resamples, seed), PERCENTILES[1])
    return 0.0 if is_chance else max(0.0, float(low) - 2 * raised), float(high) - raised


def brier(probabilities: FloatArray, correct: FloatArray) -> float:
    """Return the mean squared error, which combines calibration and sharpness. Lower is better."""
    return float(np.mean((probabilities - correct) ** 2))


@dataclass(frozen=True, slots=True)
class BrierParts:
    """Brier score = reliability − resolution + uncertainty (Murphy 1973), over distinct probabilities.

    `reliability`: squared distance between probabilities and observed shares; 0 is best. `resolution`: squared distance
    of the observed shares from the base rate; higher is better. `uncertainty`: base rate · (1 − base rate).
    """

    reliability: float
    resolution: float
    uncertainty: float


def brier_parts(probabilities: FloatArray, correct: FloatArray) -> BrierParts:
    said, which = np.unique(probabilities, return_inverse=True)
    counts = np.bincount(which)
    share = np.bincount(which, correct) / counts
    base_rate = correct.mean()
    return BrierParts(
        float(counts @ (said - share) ** 2 / len(correct)),
        float(counts @ (share - base_rate) ** 2 / len(correct)),
        float(base_rate * (1 - base_rate)),
    )


def auroc(probabilities: FloatArray, correct: FloatArray) -> float:
    """Return the chance that a right prediction has a higher probability than a wrong one; ties count half.

    NaN if all predictions are right or all are wrong.
    """
    _, which = np.unique(probabilities, return_inverse=True)
    right = np.bincount(which, correct)
    wrong = np.bincount(which) - right
    pairs = right.sum() * wrong.sum()
    return float(right @ (np.cumsum(wrong) - wrong / 2) / pairs) if pairs else float("nan")


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """A risk-coverage curve: `risk[i]` is the error rate of the most confident `coverage[i]` of the predictions.

    There is one point per distinct probability, with coverage ascending to 1. `area` under the curve is the mean risk.
    """

    coverage: FloatArray
    risk: FloatArray
    area: float


def risk_coverage(probabilities: FloatArray, correct: FloatArray) -> RiskCoverage:
    _, which = np.unique(-probabilities, return_inverse=True)
    shown = np.cumsum(np.bincount(which))
    risk = np.cumsum(np.bincount(which, 1 - correct)) / shown
    coverage = shown / len(correct)
    return RiskCoverage(coverage, risk, float(np.diff(coverage, prepend=0.0) @ risk))


def bootstrap(
    measure: Measure, *columns: NDArray[Any], resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[float, float]:
    """Return the 95 % percentile interval of a measure over bootstrapped rows. NaN results are left out.

    For measures without sampling bias; for the calibration error, use `ece_interval`.
    """
    low, high = np.nanpercentile(_resampled(measure, columns, resamples, seed), PERCENTILES)
    return float(low), float(high)


def _resampled(measure: Measure, columns: Sequence[NDArray[Any]], resamples: int, seed: int) -> FloatArray:
    count = len(columns[0])
    chosen: NDArray[np.int64] = np.random.default_rng(seed).integers(0, count, (resamples, count))
    return np.array([measure(*(column[drawn] for column in columns)) for drawn in chosen])
