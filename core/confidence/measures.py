"""Measures of probabilities, calibration and discrimination, and the explanation of a badge, shown for “Why?”.

`probabilities` are in [0, 1] and `correct` is 0 or 1; both have shape (n,), n ≥ 1. Results are fractions in [0, 1]
unless stated otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.confidence.calibrator import MIN_OUTCOMES, MODERATE_SCORE, STRONG_SCORE
from core.confidence.ensemble import FloatArray
from core.model.badge import (
    Badge,
    BadgeExplanation,
    BadgeReference,
    Drift,
    Prediction,
    PredictionKind,
    Strength,
    Verdict,
)

BINS = 10
FLOOR_DRAWS = 20  # simulated outcomes per set of probabilities
RESAMPLES = 1_000
SEED = 7
PERCENTILES = (2.5, 97.5)  # of a 95 % interval
NORMAL_95 = 1.96  # half the width of a normal 95 % interval, in standard deviations

Measure = Callable[..., float]  # columns of one length → figure


@dataclass(frozen=True, slots=True)
class Reliability:
    """The non-empty bins of a reliability diagram, in ascending order. A bin includes its upper edge.

    All arrays have the same length: `counts` of predictions, their mean probability `confidence`, and their share of
    right ones `accuracy`.
    """

    counts: FloatArray
    confidence: FloatArray
    accuracy: FloatArray

    @property
    def interval(self) -> tuple[FloatArray, FloatArray]:
        """Return the shares between which the accuracy of each bin lies with 95 % confidence (Wilson 1927)."""
        spread = NORMAL_95**2 / self.counts
        centre = (self.accuracy + spread / 2) / (1 + spread)
        variance = self.accuracy * (1 - self.accuracy) / self.counts + spread / self.counts / 4
        half = NORMAL_95 * np.sqrt(variance) / (1 + spread)
        return centre - half, centre + half


def reliability(probabilities: FloatArray, correct: FloatArray) -> Reliability:
    """Return the reliability diagram's figures, in bins of equal width."""
    inner = np.arange(1, BINS) / BINS
    bin_of = np.searchsorted(inner, probabilities)
    counts = np.bincount(bin_of, minlength=len(inner) + 1).astype(float)
    held = counts > 0
    confidence = np.bincount(bin_of, probabilities, len(counts))[held] / counts[held]
    accuracy = np.bincount(bin_of, correct, len(counts))[held] / counts[held]
    return Reliability(counts[held], confidence, accuracy)


def ece(probabilities: FloatArray, correct: FloatArray) -> float:
    """Return the expected calibration error (LM-PACE, equation 2)."""
    bins = reliability(probabilities, correct)
    return float(bins.counts @ np.abs(bins.accuracy - bins.confidence) / len(correct))


def ece_floor(probabilities: FloatArray, draws: int = FLOOR_DRAWS, seed: int = SEED) -> float:
    """Return the mean ECE if every probability were exactly true; above 0 by chance, more so for few predictions."""
    return float(ece_by_chance(probabilities, draws, seed).mean())


def ece_by_chance(probabilities: FloatArray, draws: int, seed: int = SEED) -> FloatArray:
    """Return the ECE of `draws` sets of outcomes that are drawn with these probabilities."""
    outcomes = np.random.default_rng(seed).random((draws, len(probabilities))) < probabilities
    return np.array([ece(probabilities, drawn.astype(float)) for drawn in outcomes])


def ece_interval(
    probabilities: FloatArray, correct: FloatArray, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[float, float]:
    """Return the 95 % interval of the ECE that infinitely many such predictions would have.

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
    """Return the mean squared error, which measures calibration and sharpness together; the lower the better."""
    return float(np.mean((probabilities - correct) ** 2))


def auroc(probabilities: FloatArray, correct: FloatArray) -> float:
    """Return the chance that a right prediction has a higher probability than a wrong one, a tie counting half.

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

    There is one point per distinct probability, with coverage ascending to 1.
    """

    coverage: FloatArray
    risk: FloatArray


def risk_coverage(probabilities: FloatArray, correct: FloatArray) -> RiskCoverage:
    _, which = np.unique(-probabilities, return_inverse=True)
    shown = np.cumsum(np.bincount(which))
    return RiskCoverage(shown / len(correct), np.cumsum(np.bincount(which, 1 - correct)) / shown)


def bootstrap(
    measure: Measure, *columns: NDArray[Any], resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[float, float]:
    """Return the 95 % percentile interval of a measure over rows of the columns drawn with replacement; NaN draws are left out.

    For measures without sampling bias; for the calibration error, use `ece_interval`.
    """
    low, high = np.nanpercentile(_resampled(measure, columns, resamples, seed), PERCENTILES)
    return float(low), float(high)


def _resampled(measure: Measure, columns: Sequence[NDArray[Any]], resamples: int, seed: int) -> FloatArray:
    count = len(columns[0])
    chosen: NDArray[np.int64] = np.random.default_rng(seed).integers(0, count, (resamples, count))
    return np.array([measure(*(column[drawn] for column in columns)) for drawn in chosen])


LATEST = 2_000  # badges measured
RESAMPLES_SHOWN = 200  # for an interval on a page
RECENT = 200  # latest labelled predictions compared
ENOUGH = 40  # minimum number of labels
DRAWS = 2_000  # of outcomes, with the probabilities that the badges show
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


def with_percentage(verdicts: Sequence[Verdict], limit: int) -> tuple[tuple[float, ...], tuple[bool, ...]]:
    """Return the latest probabilities that were shown, and whether these claims were right."""
    shown = [(probability, correct) for probability, correct in verdicts if probability is not None][-limit:]
    return tuple(each[0] for each in shown), tuple(each[1] for each in shown)


@lru_cache(maxsize=16)  # the same labels are measured once for all pages
def measure_quality(verdicts: tuple[Verdict, ...]) -> Quality | None:
    """Return the quality, oldest verdict first; None if no badge with a percentage was judged."""
    shown, correct = with_percentage(verdicts, LATEST)
    if not shown:
        return None
    probabilities, outcomes = np.array(shown, dtype=np.float64), np.array(correct, dtype=np.float64)
    low, high = ece_interval(probabilities, outcomes, RESAMPLES_SHOWN)
    area = auroc(probabilities, outcomes)
    return Quality(
        shown,
        correct,
        ece(probabilities, outcomes),
        low,
        high,
        ece_floor(probabilities),
        brier(probabilities, outcomes),
        None if np.isnan(area) else area,
    )


@lru_cache(maxsize=16)  # the same labels are measured once for all pages
def measure_drift(verdicts: tuple[Verdict, ...], seed: int = 0) -> Drift | None:
    """Compare the badges with their outcomes, oldest first; None while there are fewer than ENOUGH.

    The limit is a quantile of the error of outcomes drawn with the shown probabilities. Calibrated badges exceed it
    once in a hundred times, however many there are.
    """
    shown, correct = with_percentage(verdicts, RECENT)
    if len(shown) < ENOUGH:
        return None
    probabilities, outcomes = np.array(shown, dtype=np.float64), np.array(correct, dtype=np.float64)
    return Drift(
        ece(probabilities, outcomes),
        float(np.quantile(ece_by_chance(probabilities, DRAWS, seed), ALARM_LEVEL)),
        float(probabilities.mean()),
        float(outcomes.mean()),
        len(outcomes),
    )


SUPPORTS = {
    Strength.STRONG: "What I found clearly supports this {kind}",
    Strength.MODERATE: "What I found partly supports this {kind}",
    Strength.WEAK: "What I found barely supports this {kind}",
}
DECIDES = {
    Strength.STRONG: "and there was enough to decide it.",
    Strength.MODERATE: "but there was not enough to decide it.",
    Strength.WEAK: "but there was hardly anything to decide it by.",
}
CHANGES = {
    PredictionKind.ANSWER: "a newer or clearer document, or somebody who presses “Wrong” and gives the right answer",
    PredictionKind.OWNER: "a cause in another team’s service, or a team that says it isn’t theirs",
    PredictionKind.CAUSE: "the same symptoms before the supposed cause, or no improvement after it is undone",
    PredictionKind.PAGE: "people who take it, or an alert that ends by itself",
}
"""The information that would change a claim, by its kind."""
STRONG_MEANS = "“Strong” is said where nine in ten such claims were right in tests on data that they were not made for."


def explained(
    prediction: Prediction,
    badge: Badge,
    judged: Sequence[Verdict],
    references: tuple[BadgeReference, ...],
    evidence: tuple[str, ...] = (),
    changes: str = "",
) -> BadgeExplanation:
    """Return the explanation: the evidence, how often such claims were right, and what would change this one.

    `judged` are the latest judged claims of the same estimator, `references` those of the prediction's that its reader may
    see. `evidence` are lines for the claim, and `changes` is what would change it, empty for the default of its kind;
    both are untrusted.
    """
    kind, evaluation = prediction.kind, prediction.evaluation
    supports = SUPPORTS[_strength(evaluation.rce)].format(kind=kind)
    versions = f"measured by {prediction.engine} {prediction.estimator_version}"
    if prediction.calibrator_version:
        versions += f", calibrated by {prediction.calibrator_version}"
    return BadgeExplanation(
        kind=kind,
        badge=badge,
        sentences=(
            f"{supports}, {DECIDES[_strength(evaluation.coe)]}",
            *([STRONG_MEANS] if badge.probability is None and badge.strength is Strength.STRONG else []),
            *evidence,
            _track_record(kind, badge, judged),
            f"What would change it: {(changes or CHANGES[kind]).rstrip('.')}.",
        ),
        references=references,
        hidden=len(prediction.references) - len(references),
        for_experts=f"COE {evaluation.coe:.2f}, RCE {evaluation.rce:.2f} (0 to 1); {versions}. {badge.explanation}",
    )


def _track_record(kind: PredictionKind, badge: Badge, judged: Sequence[Verdict]) -> str:
    """Return how often claims with about the same percentage were right, or all claims if there are none."""
    lately = "lately" * (len(judged) >= LATEST)
    if badge.probability is not None:
        bin_of = _bin(badge.probability)
        same = [right for shown, right in judged if shown is not None and _bin(shown) == bin_of]
        if same:
            shown = f"{100 * bin_of / BINS:.0f}–{100 * (bin_of + 1) / BINS:.0f} %"
            return f"Of {_claims(kind, len(same))} shown at {shown} and judged {lately or 'since'}, {sum(same)} turned out right."
    if not judged:
        return f"Nobody has judged such a claim yet. A percentage needs {MIN_OUTCOMES} judgements."
    right = sum(correct for _, correct in judged)
    few = f"; a percentage needs {MIN_OUTCOMES}" if badge.probability is None else ""
    return f"Of {_claims(kind, len(judged))} judged {lately or 'so far'}, {right} turned out right{few}."


def _claims(kind: PredictionKind, count: int) -> str:
    return f"{count} {kind} that was" if count == 1 else f"{count} {kind.plural} that were"


def _bin(probability: float) -> int:
    """Return the bin of the reliability diagram; a bin includes its upper edge, and the first one 0 as well."""
    return max(0, math.ceil(round(probability * BINS, 9)) - 1)


def _strength(measure: float) -> Strength:
    if measure >= STRONG_SCORE:
        return Strength.STRONG
    return Strength.MODERATE if measure >= MODERATE_SCORE else Strength.WEAK
