"""Calibrators: maps from raw measures to probabilities, fitted on labelled outcomes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product

import numpy as np

from core.confidence.ensemble import FloatArray, Tally, boundaries, count, distinct, fit_ensemble, softmax
from core.confidence.groups import fit_offsets
from core.confidence.thresholds import fit_thresholds
from core.model.badge import RCE_ALONE, Badge, Calibrator, Steps, Strength, Transformation
from core.model.prediction import Evaluation

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
    if by_thresholds and len(labelled) >= THRESHOLD_OUTCOMES:
        steps = (fit_thresholds(coe, rce, correct, transformations),)
    else:
        steps = _curves(coe, rce, correct, transformations)
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
