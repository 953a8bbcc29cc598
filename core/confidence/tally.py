"""Labelled outcomes, counted at each level of a score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Tally:
    """How many labels were right and how many wrong at each level, `levels` ascending, all three of one length."""

    levels: FloatArray
    right: FloatArray
    wrong: FloatArray

    @property
    def counts(self) -> FloatArray:
        return self.right + self.wrong

    def deal(self, hands: int) -> list[Tally]:
        """The labels in `hands` parts whose scores and shares of right ones are as alike as can be."""
        return [
            Tally(self.levels, _hand(self.right, hand, hands), _hand(self.wrong, hand, hands)) for hand in range(hands)
        ]

    def without(self, part: Tally) -> Tally:
        return Tally(self.levels, self.right - part.right, self.wrong - part.wrong)


def count(scores: FloatArray, correct: FloatArray, levels: FloatArray | None = None) -> Tally:
    """Every score counts at the nearest of `levels` (ascending), by default at itself. `correct` is 0 or 1 each."""
    if levels is None:
        levels = distinct(scores)
    nearest = np.searchsorted(boundaries(levels), scores)
    return Tally(
        levels,
        right=np.bincount(nearest, correct, len(levels)).astype(np.float64),
        wrong=np.bincount(nearest, 1 - correct, len(levels)).astype(np.float64),
    )


def distinct(scores: FloatArray) -> FloatArray:
    """The distinct scores, ascending; what differs by less than a millionth is one."""
    return np.unique(scores.round(6))


def boundaries(levels: FloatArray) -> FloatArray:
    """Half-way between neighbours; a score on a boundary belongs to the level below."""
    return (levels[1:] + levels[:-1]) / 2


def _hand(counts: FloatArray, hand: int, hands: int) -> FloatArray:
    """Dealt one by one from the lowest level to the highest, this hand gets every `hands`-th."""
    dealt = np.concatenate([[0.0], np.cumsum(counts)])
    return np.diff((dealt + hands - 1 - hand) // hands)
