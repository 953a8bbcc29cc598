"""π(c, s; θ): combines the two measures into one score (LM-PACE, section 4.4)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import overload

from core.confidence.tally import FloatArray


@dataclass(frozen=True, slots=True)
class Transformation:
    """A transformation that moves the score towards `anchor` the less the references can decide.

    `weight` ≥ 0 is the influence of the COE (0: none); `anchor` in [0, 1] is the score of an undecidable case.
    """

    weight: float = 1.0
    anchor: float = 0.0

    @overload
    def score(self, coe: float, rce: float) -> float: ...

    @overload
    def score(self, coe: FloatArray, rce: FloatArray) -> FloatArray: ...

    def score(self, coe: float | FloatArray, rce: float | FloatArray) -> float | FloatArray:
        """Return a score in [0, 1] for measures in [0, 1], non-decreasing in the RCE. Works element-wise on arrays."""
        return self.anchor + coe**self.weight * (rce - self.anchor)


RCE_ALONE = Transformation(weight=0.0)
CANDIDATES = (RCE_ALONE, *(Transformation(*theta) for theta in product((0.5, 1.0, 2.0, 4.0), (0.0, 0.25, 0.5, 0.75))))
