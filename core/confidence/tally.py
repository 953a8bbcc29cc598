"""Counts of labelled outcomes at each level of a score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Tally:
    """The numbers of right and wrong labels at each level. `levels` ascend; all arrays have the same length."""

    levels: FloatArray
    right: FloatArray
    wrong: FloatArray

    @property
    def counts(self) -> FloatArray:
        return self.right + self.wrong

    def deal(self, hands: int) -> list[Tally]:
        """Return the labels in `hands` parts with score distributions and accuracies as similar as possible."""
        return [
            Tally(self.levels, _hand(self.right, hand, hands), _hand(self.wrong, hand, hands)) for hand in range(hands)
        ]

    def without(self, part: Tally) -> Tally:
        return Tally(self.levels, self.right - part.right, self.wrong - part.wrong)


def count(scores: FloatArray, correct: FloatArray, levels: FloatArray | None = None) -> Tally:
    """Count every score at the nearest of `levels` (ascending; by default, the distinct scores).

    `correct` is 0 or 1.
    """
    if levels is None:
        levels = distinct(scores)
    nearest = np.searchsorted(boundaries(levels), scores)
    return Tally(
        levels,
        right=np.bincount(nearest, correct, len(levels)).astype(np.float64),
        wrong=np.bincount(nearest, 1 - correct, len(levels)).astype(np.float64),
    )


def distinct(scores: FloatArray) -> FloatArray:
    """Return the distinct scores in ascending order. Differences below a millionth are ignored."""
    return np.unique(scores.round(6))


def boundaries(levels: FloatArray) -> FloatArray:
    """Return the midpoints between neighbouring levels. A score on a midpoint belongs to the lower level."""
    return (levels[1:] + levels[:-1]) / 2


def _hand(counts: FloatArray, hand: int, hands: int) -> FloatArray:
    """Return every `hands`-th label, dealt from the lowest level to the highest."""
    dealt = np.concatenate([[0.0], np.cumsum(counts)])
    return np.diff((dealt + hands - 1 - hand) // hands)
