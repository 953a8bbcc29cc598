"""π(c, s; θ): one score out of the two measures (LM-PACE, section 4.4)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import overload

from core.confidence.tally import FloatArray


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
