"""The badge beside every answer, owner and cause."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Strength(StrEnum):
    """How much evidence there is, said in a word while there are too few outcomes for an honest number."""

    STRONG = "strong"
    MODERATE = "moderate"
    WEAK = "weak"


@dataclass(frozen=True, slots=True)
class Badge:
    """`probability` is calibrated and in [0, 1], or None while there are too few labelled outcomes.

    `outcomes` is the number of labelled outcomes behind the calibration, `fitted_at` when it was fitted.
    """

    strength: Strength
    probability: float | None = None
    outcomes: int = 0
    fitted_at: datetime | None = None

    @property
    def text(self) -> str:
        if self.probability is None:
            return f"○○○ not calibrated yet · evidence {self.strength}"
        percentage = round(100 * self.probability)
        filled = 1 + (percentage >= 50) + (percentage >= 80)
        return f"{'●' * filled}{'○' * (3 - filled)} {percentage} %"

    @property
    def explanation(self) -> str:
        """The sentence behind the badge: what the number rests on."""
        if self.probability is None:
            return f"Too few labelled outcomes for an honest number (so far {self.outcomes}). The evidence is {self.strength}."
        fitted = f", fitted {self.fitted_at:%Y-%m-%d}" if self.fitted_at else ""
        return f"Calibrated on {self.outcomes} labelled outcomes{fitted}."
