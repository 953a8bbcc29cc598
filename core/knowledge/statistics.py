"""How many passages hold each term: what makes a rare word weigh more than a common one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

MeasuredPassage = tuple[NDArray[np.uint32], float]
"""The distinct numbers of the terms and words of a passage, and its length in terms."""


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """Document frequencies of a corpus, exact.

    `terms` are distinct ascending numbers, of terms and of words as they are written, `counts[i] > 0` the number of
    passages that hold `terms[i]`.
    `passages` is the number of passages, `total_length` the sum of their lengths.
    """

    terms: NDArray[np.uint32]
    counts: NDArray[np.int32]
    passages: int
    total_length: float

    @classmethod
    def empty(cls) -> Self:
        return cls(np.empty(0, np.uint32), np.empty(0, np.int32), 0, 0.0)

    @property
    def average_length(self) -> float:
        return self.total_length / self.passages if self.passages else 1.0

    def changed(self, added: Sequence[MeasuredPassage], removed: Sequence[MeasuredPassage]) -> Self:
        """The statistics after these passages came and went."""
        gained, lost = _tallied(added), _tallied(removed)
        terms, spots = np.unique(np.concatenate([self.terms, gained[0], lost[0]]), return_inverse=True)
        signed = np.concatenate([self.counts, gained[1], -lost[1]])
        counts = np.bincount(spots, weights=signed, minlength=terms.size).astype(np.int32)
        kept = counts > 0
        length = self.total_length + sum(size for _, size in added) - sum(size for _, size in removed)
        return type(self)(terms[kept], counts[kept], self.passages + len(added) - len(removed), length)

    def frequencies(self, numbers: NDArray[np.uint32]) -> NDArray[np.int32]:
        """The number of passages that hold each term, 0 for an unknown one."""
        if not self.terms.size:
            return np.zeros(numbers.size, np.int32)
        spots = np.minimum(np.searchsorted(self.terms, numbers), self.terms.size - 1)
        return np.where(self.terms[spots] == numbers, self.counts[spots], 0).astype(np.int32)

    def idf(self, numbers: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Inverse document frequency of BM25, above 0 for every term (Robertson and Zaragoza 2009, eq. 3.4, plus 1)."""
        frequency = self.frequencies(numbers)
        return np.log1p((self.passages - frequency + 0.5) / (frequency + 0.5))


def _tallied(passages: Sequence[MeasuredPassage]) -> tuple[NDArray[np.uint32], NDArray[np.intp]]:
    """The terms of passages, ascending, and how many passages hold each."""
    numbers = [np.empty(0, np.uint32), *(numbers for numbers, _ in passages)]
    return np.unique(np.concatenate(numbers), return_counts=True)
