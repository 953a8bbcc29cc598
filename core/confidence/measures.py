"""How true and how telling probabilities are.

`probabilities` are in [0, 1], `correct` is 0 or 1 each; both have shape (n,), n ≥ 1. Figures are fractions in [0, 1]
unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.confidence.tally import FloatArray

BINS = 10
FLOOR_DRAWS = 20  # outcomes drawn for each set of probabilities
RESAMPLES = 1_000
SEED = 7
PERCENTILES = (2.5, 97.5)  # that 95 % of draws lie between
NORMAL_95 = 1.96  # standard deviations that hold 95 % of a normal distribution

Edges = Callable[[FloatArray, int], FloatArray]  # probabilities, number of bins → ascending inner edges
Measure = Callable[..., float]  # columns of one length → figure


def equal_width(_probabilities: FloatArray, bins: int = BINS) -> FloatArray:
    """Bins of the same width, whatever they hold."""
    return np.arange(1, bins) / bins


def equal_mass(probabilities: FloatArray, bins: int = BINS) -> FloatArray:
    """Bins of about equally many predictions; equal probabilities stay together, so there may be fewer bins."""
    return np.unique(np.quantile(probabilities, np.arange(1, bins) / bins, method="inverted_cdf"))


@dataclass(frozen=True, slots=True)
class Reliability:
    """The bins that hold any prediction, from the least confident: a bin holds its upper edge and not its lower one.

    All four have one length: `counts` of predictions, `confidence` their mean probability, `accuracy` their share of
    right ones, `upper` the bin's upper edge.
    """

    counts: FloatArray
    confidence: FloatArray
    accuracy: FloatArray
    upper: FloatArray

    @property
    def interval(self) -> tuple[FloatArray, FloatArray]:
        """Between which shares the accuracy of each bin lies with 95 % confidence, lower and upper (Wilson 1927)."""
        spread = NORMAL_95**2 / self.counts
        centre = (self.accuracy + spread / 2) / (1 + spread)
        variance = self.accuracy * (1 - self.accuracy) / self.counts + spread / self.counts / 4
        half = NORMAL_95 * np.sqrt(variance) / (1 + spread)
        return centre - half, centre + half


def reliability(
    probabilities: FloatArray, correct: FloatArray, bins: int = BINS, edges: Edges = equal_width
) -> Reliability:
    """The reliability diagram's figures."""
    inner = edges(probabilities, bins)
    bin_of = np.searchsorted(inner, probabilities)
    counts = np.bincount(bin_of, minlength=len(inner) + 1).astype(float)
    held = counts > 0
    confidence = np.bincount(bin_of, probabilities, len(counts))[held] / counts[held]
    accuracy = np.bincount(bin_of, correct, len(counts))[held] / counts[held]
    return Reliability(counts[held], confidence, accuracy, np.append(inner, 1.0)[held])


def ece(probabilities: FloatArray, correct: FloatArray, bins: int = BINS, edges: Edges = equal_width) -> float:
    """Expected calibration error (LM-PACE, equation 2)."""
    found = reliability(probabilities, correct, bins, edges)
    return float(found.counts @ np.abs(found.accuracy - found.confidence) / len(correct))


def max_calibration_error(
    probabilities: FloatArray, correct: FloatArray, bins: int = BINS, edges: Edges = equal_width
) -> float:
    """The error of the worst bin, however few predictions it holds."""
    found = reliability(probabilities, correct, bins, edges)
    return float(np.abs(found.accuracy - found.confidence).max())


def ece_floor(
    probabilities: FloatArray, bins: int = BINS, edges: Edges = equal_width, draws: int = FLOOR_DRAWS, seed: int = SEED
) -> float:
    """The mean ECE if every probability were exactly true: chance alone puts it above 0, the more the fewer they are."""
    return float(ece_by_chance(probabilities, draws, seed, bins, edges).mean())


def ece_by_chance(
    probabilities: FloatArray, draws: int, seed: int = SEED, bins: int = BINS, edges: Edges = equal_width
) -> FloatArray:
    """The ECE of each of so many sets of outcomes that are drawn with the very probabilities."""
    outcomes = np.random.default_rng(seed).random((draws, len(probabilities))) < probabilities
    return np.array([ece(probabilities, drawn.astype(float), bins, edges) for drawn in outcomes])


def ece_interval(
    probabilities: FloatArray, correct: FloatArray, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[float, float]:
    """The 95 % interval of the ECE that endless predictions of the kind would have.

    Chance raises the error of a sample, and drawing from the sample raises it once more: percentiles of those draws would
    hold the true error of honest probabilities almost never. So the second is taken off both ends, the first off the lower,
    which is 0 where honest probabilities would show such an error too.
    """
    error = ece(probabilities, correct)
    errors = _resampled(ece, (probabilities, correct), resamples, seed)
    raised = max(0.0, float(errors.mean()) - error)
    low, high = np.percentile(errors, PERCENTILES)
    is_chance = error <= np.percentile(ece_by_chance(probabilities, resamples, seed), PERCENTILES[1])
    return 0.0 if is_chance else max(0.0, float(low) - 2 * raised), float(high) - raised


def brier(probabilities: FloatArray, correct: FloatArray) -> float:
    """The mean squared error, of honesty and sharpness together; the lower the better."""
    return float(np.mean((probabilities - correct) ** 2))


@dataclass(frozen=True, slots=True)
class BrierParts:
    """Brier score = reliability − resolution + uncertainty (Murphy 1973), over distinct probabilities.

    `reliability`: squared distance of what was said from what came true, 0 is best. `resolution`: how far the shares
    that came true differ from the base rate, the more the better. `uncertainty`: base rate · (1 − base rate).
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
    """The chance that a right prediction has a higher probability than a wrong one, a tie counting half.

    NaN if all are right or all are wrong: there is nothing to tell apart.
    """
    _, which = np.unique(probabilities, return_inverse=True)
    right = np.bincount(which, correct)
    wrong = np.bincount(which) - right
    pairs = right.sum() * wrong.sum()
    return float(right @ (np.cumsum(wrong) - wrong / 2) / pairs) if pairs else float("nan")


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """`risk[i]`: the share of wrong ones if only the most confident `coverage[i]` of all predictions are shown.

    One point a distinct probability, coverage ascending to 1. `area` under the curve is the mean risk over coverages.
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
    """The 95 % percentile interval of a measure over rows of the columns drawn with replacement; NaN draws are left out.

    For a measure that a sample does not raise: the calibration error has its own, `ece_interval`.
    """
    low, high = np.nanpercentile(_resampled(measure, columns, resamples, seed), PERCENTILES)
    return float(low), float(high)


def _resampled(measure: Measure, columns: Sequence[NDArray[Any]], resamples: int, seed: int) -> FloatArray:
    count = len(columns[0])
    chosen: NDArray[np.int64] = np.random.default_rng(seed).integers(0, count, (resamples, count))
    return np.array([measure(*(column[drawn] for column in columns)) for drawn in chosen])
