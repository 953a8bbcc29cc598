"""Calibrators: maps from raw measures to probabilities, fitted on labelled outcomes, with their categories.

The thresholds of the categories are optimal (LM-PACE, section 4.4, equation 3).

Teams and sources whose predictions are right more or less often than others with the same scores have offsets. Partial
pooling: every group has an offset in log-odds with a normal prior around 0, so groups with few labels stay close to the
pooled value. The spread of the prior is averaged by its likelihood on held-out labels.

Categories divide [0, 1] evenly, and each says its middle. For a given transformation of the two measures, the best
thresholds are found exactly, by dynamic programming over the cuts between neighbouring scores: the objective is a sum
over categories, so the best last category leaves a smaller problem of the same form. The transformation itself has two
bounded parts and an objective with jumps, so a grid of it is searched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product

import numpy as np
from numpy.typing import NDArray

from core.confidence.ensemble import FloatArray, Tally, boundaries, count, distinct, fit_ensemble, softmax
from core.model.badge import NO_SURER, RCE_ALONE, Badge, Calibrator, Evaluation, Steps, Strength, Transformation

MIN_OUTCOMES = 30  # labelled outcomes needed for an honest percentage
THRESHOLD_OUTCOMES = 500  # from which optimal thresholds do not follow chance
RESOLUTION = 100  # levels of the scores from 0 to 1, and as many more at quantiles of the labelled scores
NEGLIGIBLE = 0.01  # weight below which a transformation is dropped

STRONG_SCORE = 0.6
MODERATE_SCORE = 0.35


@dataclass(frozen=True, slots=True)
class Scale:
    """Score thresholds of strong and moderate evidence. With `by_rce`, the RCE alone is the score."""

    strong: float = STRONG_SCORE
    moderate: float = MODERATE_SCORE
    by_rce: bool = False

    def strength(self, evaluation: Evaluation) -> Strength:
        score = evaluation.rce if self.by_rce else raw_score(evaluation)
        if score >= self.strong and (not self.by_rce or evaluation.coe >= DECIDABLE):
            return Strength.STRONG
        return Strength.MODERATE if score >= self.moderate else Strength.WEAK


DECIDABLE = 0.5  # minimum COE of strong evidence under `by_rce`
RAW = Scale()
PROBABLE = Scale(strong=0.9, moderate=0.5, by_rce=True)
"""For estimators whose RCE is a probability fitted elsewhere, where strong evidence was right nine times in ten."""
UNPROVEN = Scale(strong=math.inf)
"""For estimators of which no strength was right nine times in ten on data that they were not made on."""
WORDLESS = Scale(strong=math.inf, moderate=0.0)
"""For claims that are hedged in their text, as answers are."""


def raw_score(evaluation: Evaluation) -> float:
    """Return the geometric mean of the two measures, which is 0 if either is."""
    return (evaluation.coe * evaluation.rce) ** 0.5


CANDIDATES = (RCE_ALONE, *(Transformation(*theta) for theta in product((0.5, 1.0, 2.0, 4.0), (0.0, 0.25, 0.5, 0.75))))


@dataclass(frozen=True, slots=True)
class Label:
    """The measures of a prediction, its outcome, and the team or source that it is about."""

    evaluation: Evaluation
    correct: bool
    group: str = ""


def fit(
    labelled: Sequence[Label],
    version: str,
    fitted_at: datetime,
    min_outcomes: int = MIN_OUTCOMES,
    *,
    by_thresholds: bool = False,
) -> Calibrator | None:
    """Fit a calibrator. Returns None for fewer than `min_outcomes` labels, which do not allow an honest percentage.

    It is one curve per transformation of the measures, weighted by its likelihood on held-out labels. With
    `by_thresholds` and THRESHOLD_OUTCOMES labels, it has the thresholds of LM-PACE (section 4.4, equation 3) instead,
    which say one of ten percentages. Groups that are right more or less often than it predicts get an offset.
    """
    if len(labelled) < min_outcomes:
        return None
    coe = np.array([label.evaluation.coe for label in labelled])
    rce = np.array([label.evaluation.rce for label in labelled])
    correct = np.array([float(label.correct) for label in labelled])
    transformations = CANDIDATES if np.ptp(coe) else (RCE_ALONE,)
    steps = (
        (fit_thresholds(coe, rce, correct, transformations),)
        if by_thresholds and len(labelled) >= THRESHOLD_OUTCOMES
        else _curves(coe, rce, correct, transformations)
    )
    pooled = Calibrator(version, steps, len(labelled), fitted_at)
    if not any(label.group for label in labelled):
        return pooled
    probabilities = np.array([pooled.probability(label.evaluation) for label in labelled])
    return replace(pooled, offsets=fit_offsets(probabilities, correct, [label.group for label in labelled]))


def _curves(
    coe: FloatArray, rce: FloatArray, correct: FloatArray, transformations: Sequence[Transformation]
) -> tuple[Steps, ...]:
    """Return a curve of each transformation that counts, as steps."""
    tallies = [_tally(transformation.score(coe, rce), correct) for transformation in transformations]
    fits = [fit_ensemble(tally) for tally in tallies]
    weights = softmax(np.array([fitted.evidence for fitted in fits]))
    weights[weights < NEGLIGIBLE] = 0.0
    weights /= weights.sum()
    return tuple(
        Steps((*boundaries(tally.levels).tolist(), 1.0), tuple(fitted.probabilities.tolist()), transformation, weight)
        for transformation, tally, fitted, weight in zip(transformations, tallies, fits, weights.tolist(), strict=True)
        if weight
    )


def _tally(scores: FloatArray, correct: FloatArray) -> Tally:
    shares = np.linspace(0, 1, RESOLUTION + 1)
    levels = np.concatenate([shares, np.quantile(scores, shares, method="inverted_cdf")])
    return count(scores, correct, distinct(levels))


def badge_for(
    evaluation: Evaluation, calibrator: Calibrator | None, outcomes: int = 0, group: str = "", scale: Scale = RAW
) -> Badge:
    """Return the badge of a prediction.

    Without a calibrator, it carries the strength of the evidence and no percentage.
    """
    strength = scale.strength(evaluation)
    if calibrator is None:
        return Badge(strength, outcomes=outcomes)
    return Badge(strength, calibrator.probability(evaluation, group), calibrator.outcomes, calibrator.fitted_at)


FOLDS = 5
USUAL_SPREAD = 0.5  # standard deviation of the half-normal prior on the spread, in log-odds
SPREADS = (0.0, 0.25, 0.5, 1.0, 2.0)  # candidate standard deviations of the offsets, in log-odds
NEWTON_STEPS = 20


def fit_offsets(probabilities: FloatArray, correct: FloatArray, groups: Sequence[str]) -> dict[str, float]:
    """Return each group's offset in log-odds.

    `probabilities` come from the pooled calibrator, `correct` is 0 or 1, and `groups` names each prediction's group
    (empty for none). All have the same length.
    """
    logits = log_odds(probabilities)
    names = np.array(groups, dtype=np.str_)
    folds = np.empty(len(names), dtype=np.intp)
    # The folds do not depend on the order of the labels.
    folds[np.lexsort((logits, correct, names))] = np.arange(len(names)) % FOLDS
    believed = [
        _held_out(logits, correct, names, folds, spread) - 0.5 * (spread / USUAL_SPREAD) ** 2 for spread in SPREADS
    ]
    fitted = [_offsets(logits, correct, names, spread) for spread in SPREADS]
    weights = softmax(np.array(believed)).tolist()
    return {
        name: sum(weight * offsets.get(name, 0.0) for weight, offsets in zip(weights, fitted, strict=True))
        for name in sorted(set(groups) - {""})
    }


def log_odds(probabilities: FloatArray) -> FloatArray:
    bounded = np.clip(probabilities, NO_SURER, 1 - NO_SURER)
    return np.log(bounded / (1 - bounded))


def _held_out(
    logits: FloatArray, correct: FloatArray, names: NDArray[np.str_], folds: NDArray[np.intp], spread: float
) -> float:
    """Return the log-likelihood of each fold's labels under offsets fitted to the other folds."""
    total = 0.0
    for fold in range(FOLDS):
        others, fold_mask = folds != fold, folds == fold
        offsets = _offsets(logits[others], correct[others], names[others], spread)
        moved = logits[fold_mask] + np.array([offsets.get(name, 0.0) for name in names[fold_mask].tolist()])
        total -= float(np.logaddexp(0.0, np.where(correct[fold_mask] > 0.5, -moved, moved)).sum())
    return total


def _offsets(logits: FloatArray, correct: FloatArray, names: NDArray[np.str_], spread: float) -> dict[str, float]:
    """Return the maximum a posteriori offset of each group, by Newton's method for all groups at once."""
    if not spread:
        return {}
    groups, group_of = np.unique(names, return_inverse=True)
    precision, offsets = 1 / spread**2, np.zeros(len(groups))
    for _ in range(NEWTON_STEPS):
        expected = 1 / (1 + np.exp(-(logits + offsets[group_of])))
        slope = np.bincount(group_of, correct - expected, len(groups)) - precision * offsets
        curvature = np.bincount(group_of, expected * (1 - expected), len(groups)) + precision
        offsets += slope / curvature
    return dict(zip(groups.tolist(), offsets.tolist(), strict=True))


CATEGORIES = 10
MAX_CUTS = 100  # maximum number of score levels between which a threshold may lie
SHARPNESS = 1.0  # weight of the Brier score; by equation 3 alone, a single category for all would often be best

Weighting = Callable[[float, FloatArray], FloatArray]  # ω: a category's confidence and counts → its weights


def by_count(_confidence: float, counts: FloatArray) -> FloatArray:
    """Weight by count, which makes equation 3 the expected calibration error."""
    return counts


def fit_thresholds(
    coe: FloatArray,
    rce: FloatArray,
    correct: FloatArray,
    transformations: Sequence[Transformation],
    *,
    weighting: Weighting = by_count,
    categories: int = CATEGORIES,
) -> Steps:
    """Return the transformation and the categories of its score that minimise equation 3.

    All arrays have the shape (n,), n ≥ 1; `correct` is 0 or 1. A category that no score falls into is left out.
    """
    fits = [_fit(each, coe, rce, correct, weighting, middles(categories)) for each in transformations]
    return min(fits, key=lambda fit: fit[0])[1]


def middles(categories: int) -> FloatArray:
    """Return the confidences of so many categories: the middle of each."""
    return (np.arange(categories) + 0.5) / categories


def _fit(
    transformation: Transformation,
    coe: FloatArray,
    rce: FloatArray,
    correct: FloatArray,
    weighting: Weighting,
    confidences: FloatArray,
) -> tuple[float, Steps]:
    scores = transformation.score(coe, rce)
    levels = distinct(np.quantile(scores, np.linspace(0, 1, MAX_CUTS), method="inverted_cdf"))
    objective, cuts = _best_cuts(count(scores, correct, levels), confidences, weighting)
    held = np.diff(cuts, prepend=0) > 0
    bounds = np.r_[0.0, boundaries(levels), 1.0]
    return objective, Steps(tuple(bounds[cuts][held].tolist()), tuple(confidences[held].tolist()), transformation)


def _best_cuts(tally: Tally, confidences: FloatArray, weighting: Weighting) -> tuple[float, list[int]]:
    """Return the objective, and for each category the number of levels up to its upper end."""
    right, counts = (np.r_[0.0, np.cumsum(values)] for values in (tally.right, tally.counts))
    right_in, counts_in = right - right[:, None], counts - counts[:, None]  # in the levels from row to column
    ordered = np.triu(np.ones(counts_in.shape, bool))
    best = np.where(np.arange(len(counts)) == 0, 0.0, np.inf)
    starts: list[FloatArray] = []
    for confidence in confidences:
        off = np.abs(confidence - right_in / np.maximum(counts_in, 1))
        brier = counts_in * confidence**2 + right_in * (1 - 2 * confidence)
        cost = np.where(ordered, weighting(confidence, counts_in) * off + SHARPNESS * brier, np.inf)
        total = best[:, None] + cost
        starts.append(total.argmin(axis=0))
        best = total.min(axis=0)
    cuts = [len(counts) - 1]
    for start in reversed(starts[1:]):
        cuts.insert(0, int(start[cuts[0]]))
    return float(best[-1]), cuts
