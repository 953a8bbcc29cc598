"""Calibrators: maps from the two measures of a prediction to a probability, as they are stored."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import exp
from typing import TYPE_CHECKING, overload

from core.model.prediction import Evaluation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

NO_SURER = 1e-4  # distance of clipped probabilities from 0 and 1


@dataclass(frozen=True, slots=True)
class Transformation:
    """A score from both measures: the less the references can decide (COE), the nearer the score is to the anchor.

    `weight` ≥ 0 is how much COE counts (0: not at all); `anchor` in [0, 1] is the score of an undecidable claim.
    """

    weight: float = 1.0
    anchor: float = 0.0

    @overload
    def score(self, coe: float, rce: float) -> float: ...

    @overload
    def score(self, coe: FloatArray, rce: FloatArray) -> FloatArray: ...

    def score(self, coe: float | FloatArray, rce: float | FloatArray) -> float | FloatArray:
        """Return a score in [0, 1], never lower for a higher RCE. Arrays are taken element by element."""
        return self.anchor + coe**self.weight * (rce - self.anchor)


RCE_ALONE = Transformation(weight=0.0)


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


def shifted(probability: float, offset: float) -> float:
    """Return the probability with its log-odds increased by `offset`; unchanged for an offset of 0."""
    if not offset:
        return probability
    inside = min(max(probability, NO_SURER), 1 - NO_SURER)
    return 1 / (1 + (1 - inside) / inside * exp(-offset))
