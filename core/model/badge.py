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


# “Likely” needs a kind of claim of which at least 90 % were right on data that it was not made on, and so far none is.
WORDS = {Strength.STRONG: "possible", Strength.MODERATE: "possible", Strength.WEAK: "unsure"}
"""How a claim that is not calibrated is called, by the strength of its evidence."""


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
        """Return the badge as every chat shows it: “●●● 86 %”, or a word where there is no honest number."""
        if self.probability is None:
            return f"{WORDS[self.strength]} · not calibrated"
        percentage = round(100 * self.probability)
        filled = 1 + (percentage >= 50) + (percentage >= 80)
        return f"{'●' * filled}{'○' * (3 - filled)} {percentage} %"

    @property
    def explanation(self) -> str:
        """Return what the number rests on, for whoever asks."""
        if self.probability is None:
            judged = "1 such claim was" if self.outcomes == 1 else f"{self.outcomes or 'no'} such claims were"
            return f"Not calibrated: {judged} judged so far, too few for a percentage."
        fitted = f", fitted {self.fitted_at:%Y-%m-%d}" if self.fitted_at else ""
        return f"Calibrated on {self.outcomes} claims that people judged{fitted}."
