"""Calibrators: maps from raw measures to probabilities, fitted on labelled outcomes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import product
from typing import overload

import numpy as np

from core.confidence.ensemble import fit_ensemble, softmax
from core.confidence.groups import fit_offsets, shifted
from core.confidence.tally import FloatArray, Tally, boundaries, count, distinct
from core.model.badge import Badge, Strength
from core.model.prediction import Evaluation

MIN_OUTCOMES = 30  # labelled outcomes needed for an honest percentage
RESOLUTION = 100  # levels of the scores between 0 and 1, and as many more at quantiles of the labelled scores
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
"""For estimators whose RCE is a probability fitted elsewhere: strong evidence was right nine times in ten there."""


def raw_score(evaluation: Evaluation) -> float:
    """Return the geometric mean of the two measures, which is 0 if either is."""
    return (evaluation.coe * evaluation.rce) ** 0.5


@dataclass(frozen=True, slots=True)
class Transformation:
    """The less the references can decide, the nearer a score comes to the anchor, whatever they support.

    `weight` ≥ 0 is how much COE counts (0: not at all); `anchor` in [0, 1] is the score of what cannot be decided.
    """

    weight: float = 1.0
    anchor: float = 0.0

    @overload
    def score(self, coe: float, rce: float) -> float: ...

    @overload
    def score(self, coe: FloatArray, rce: FloatArray) -> FloatArray: ...

    def score(self, coe: float | FloatArray, rce: float | FloatArray) -> float | FloatArray:
        """In [0, 1] for measures in [0, 1], and never lower for a higher RCE. Arrays are taken element by element."""
        return self.anchor + coe**self.weight * (rce - self.anchor)


RCE_ALONE = Transformation(weight=0.0)
CANDIDATES = (RCE_ALONE, *(Transformation(*theta) for theta in product((0.5, 1.0, 2.0, 4.0), (0.0, 0.25, 0.5, 0.75))))


@dataclass(frozen=True, slots=True)
class Steps:
    """A step function of one score: `probabilities[i]` applies up to and including `upper[i]`.

    Both ascend; the last upper bound is 1.0. `transformation` computes the score from the two measures.
    """

    upper: tuple[float, ...]
    probabilities: tuple[float, ...]
    transformation: Transformation = RCE_ALONE
    weight: float = 1.0

    def probability(self, evaluation: Evaluation) -> float:
        score = self.transformation.score(evaluation.coe, evaluation.rce)
        return self.probabilities[bisect_left(self.upper, min(score, 1.0))]


@dataclass(frozen=True, slots=True)
class Calibrator:
    """A weighted mean of step functions, with weights that sum to 1. It never decreases with the RCE.

    `offsets` maps a group to its deviation in log-odds from the pooled probability; other groups do not deviate.
    """

    version: str
    steps: tuple[Steps, ...]
    outcomes: int
    fitted_at: datetime
    offsets: Mapping[str, float] = field(default_factory=dict[str, float])

    def probability(self, evaluation: Evaluation, group: str = "") -> float:
        """Return a probability in [0, 1]."""
        pooled = sum(steps.weight * steps.probability(evaluation) for steps in self.steps)
        return shifted(pooled, self.offsets.get(group, 0.0))


@dataclass(frozen=True, slots=True)
class Label:
    """The measures of a prediction, its outcome, and the team or source that it is about."""

    evaluation: Evaluation
    correct: bool
    group: str = ""


def fit(
    labelled: Sequence[Label], version: str, fitted_at: datetime, min_outcomes: int = MIN_OUTCOMES
) -> Calibrator | None:
    """Fit a calibrator: one map per transformation of the measures, weighted by its likelihood on held-out labels.

    Groups that are right more or less often than the pooled map predicts get an offset. Returns None for fewer than
    `min_outcomes` labels, which do not allow an honest percentage.
    """
    if len(labelled) < min_outcomes:
        return None
    coe = np.array([label.evaluation.coe for label in labelled])
    rce = np.array([label.evaluation.rce for label in labelled])
    correct = np.array([float(label.correct) for label in labelled])
    transformations = CANDIDATES if np.ptp(coe) else (RCE_ALONE,)
    tallies = [_tally(transformation.score(coe, rce), correct) for transformation in transformations]
    fits = [fit_ensemble(tally) for tally in tallies]
    weights = softmax(np.array([fitted.evidence for fitted in fits]))
    weights[weights < NEGLIGIBLE] = 0.0
    weights /= weights.sum()
    steps = tuple(
        Steps((*boundaries(tally.levels).tolist(), 1.0), tuple(fitted.probabilities.tolist()), transformation, weight)
        for transformation, tally, fitted, weight in zip(transformations, tallies, fits, weights.tolist(), strict=True)
        if weight
    )
    pooled = Calibrator(version, steps, len(labelled), fitted_at)
    if not any(label.group for label in labelled):
        return pooled
    said = np.array([pooled.probability(label.evaluation) for label in labelled])
    return replace(pooled, offsets=fit_offsets(said, correct, [label.group for label in labelled]))


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
