"""From raw measures to a probability, learned from labelled outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from core.confidence.badge import Badge, Strength
from core.confidence.prediction import Evaluation

MIN_OUTCOMES = 30  # labelled outcomes below which a percentage would promise more than is known
PRIOR_WEIGHT = 10.0  # outcomes that the base rate counts for, spread over the fitted steps

STRONG_SCORE = 0.6
MODERATE_SCORE = 0.35


def raw_score(evaluation: Evaluation) -> float:
    """The one number that orders predictions: their geometric mean, so that either measure alone can pull it to 0."""
    return (evaluation.coe * evaluation.rce) ** 0.5


@dataclass(frozen=True, slots=True)
class Calibrator:
    """A step function from raw score to probability: `probabilities[i]` holds up to and including `upper[i]`.

    Both are ascending; the last upper bound is 1.0.
    """

    version: str
    upper: tuple[float, ...]
    probabilities: tuple[float, ...]
    outcomes: int
    fitted_at: datetime

    def probability(self, evaluation: Evaluation) -> float:
        score = raw_score(evaluation)
        return next(p for bound, p in zip(self.upper, self.probabilities, strict=True) if score <= bound)


@dataclass(slots=True)
class _Block:
    """Neighbouring outcomes that share one probability."""

    upper: float
    correct: float
    weight: float

    @property
    def rate(self) -> float:
        return self.correct / self.weight


def fit(labelled: Sequence[tuple[Evaluation, bool]], version: str, fitted_at: datetime) -> Calibrator | None:
    """Isotonic regression (pool adjacent violators), every step shrunk towards the base rate.

    None while there are fewer than MIN_OUTCOMES labels: then no honest percentage can be shown.
    """
    if len(labelled) < MIN_OUTCOMES:
        return None
    base_rate = sum(correct for _, correct in labelled) / len(labelled)
    blocks: list[_Block] = []
    scored = sorted((raw_score(evaluation), correct) for evaluation, correct in labelled)
    for score, alike in groupby(scored, key=itemgetter(0)):
        outcomes = [correct for _, correct in alike]
        blocks.append(_Block(score, float(sum(outcomes)), float(len(outcomes))))
        while len(blocks) > 1 and blocks[-2].rate >= blocks[-1].rate:
            last = blocks.pop()
            blocks[-1] = _Block(last.upper, blocks[-1].correct + last.correct, blocks[-1].weight + last.weight)
    prior = PRIOR_WEIGHT / len(blocks)
    probabilities = [(block.correct + prior * base_rate) / (block.weight + prior) for block in blocks]
    upper = [*(block.upper for block in blocks[:-1]), 1.0]
    return Calibrator(version, tuple(upper), _ascending(probabilities), len(labelled), fitted_at)


def _ascending(values: Sequence[float]) -> tuple[float, ...]:
    """Shrinking short steps more than long ones can break the order; a running maximum restores it."""
    return tuple(max(values[: index + 1]) for index in range(len(values)))


def badge_for(evaluation: Evaluation, calibrator: Calibrator | None, outcomes: int = 0) -> Badge:
    """The badge of a prediction; without a calibrator it says so and names the strength of the evidence."""
    score = raw_score(evaluation)
    strength = (
        Strength.STRONG if score >= STRONG_SCORE else Strength.MODERATE if score >= MODERATE_SCORE else Strength.WEAK
    )
    if calibrator is None:
        return Badge(strength, outcomes=outcomes)
    return Badge(strength, calibrator.probability(evaluation), calibrator.outcomes, calibrator.fitted_at)
