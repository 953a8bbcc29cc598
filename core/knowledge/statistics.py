"""How many passages hold each term, and how many of them repeat it: what a word of a question weighs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

# Chosen on headings and sentences of public documentation, each removed from its page and asked.
USUALLY_REPEATED = 0.4  # share of the passages with a term that repeat it, for a term of which nothing is known
PRIOR_PASSAGES = 3  # passages that this counts for
REPETITION_EXPONENT = 0.5  # how far that share tells in a term's weight

MeasuredPassage = tuple[NDArray[np.uint32], NDArray[np.uint32], float]
"""The distinct numbers of the terms of a passage, those of the terms that it repeats, and its length in terms."""


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """Document frequencies of a corpus, exact.

    `terms` are distinct ascending numbers, `counts[i] > 0` the number of
    passages that hold `terms[i]`, and `repeated[i]` the number of those that hold it twice, or in their title.
    `passages` is the number of passages, `total_length` the sum of their lengths.
    """

    terms: NDArray[np.uint32]
    counts: NDArray[np.int32]
    repeated: NDArray[np.int32]
    passages: int
    total_length: float

    @classmethod
    def empty(cls) -> Self:
        return cls(np.empty(0, np.uint32), np.empty(0, np.int32), np.empty(0, np.int32), 0, 0.0)

    @property
    def average_length(self) -> float:
        """Above 0, also where no passage holds a term."""
        return self.total_length / self.passages if self.total_length else 1.0

    def changed(self, added: Sequence[MeasuredPassage], removed: Sequence[MeasuredPassage]) -> Self:
        """The statistics after these passages came and went."""
        gained, lost = _tallied(added), _tallied(removed)
        terms, spots = np.unique(np.concatenate([self.terms, gained[0], lost[0]]), return_inverse=True)
        counts, repeated = (
            np.bincount(spots, np.concatenate([before, more, -less]), terms.size).astype(np.int32)
            for before, more, less in ((self.counts, gained[1], lost[1]), (self.repeated, gained[2], lost[2]))
        )
        kept = counts > 0
        length = self.total_length + sum(size for *_, size in added) - sum(size for *_, size in removed)
        passages = self.passages + len(added) - len(removed)
        return type(self)(terms[kept], counts[kept], repeated[kept], passages, length)

    def frequencies(self, numbers: NDArray[np.uint32]) -> NDArray[np.int32]:
        """The number of passages that hold each term, 0 for an unknown one."""
        return self._looked_up(self.counts, numbers)

    def weights(self, numbers: NDArray[np.uint32]) -> NDArray[np.float64]:
        """What each term of a query weighs, above 0.

        That is the inverse document frequency of BM25 (Robertson and Zaragoza 2009, eq. 3.4, plus 1), and more for a
        term that a passage which holds it tends to repeat: it is what such passages are about (Church 2000, adaptation).
        """
        frequency = self.frequencies(numbers)
        idf = np.log1p((self.passages - frequency + 0.5) / (frequency + 0.5))
        repeated = self._looked_up(self.repeated, numbers) + USUALLY_REPEATED * PRIOR_PASSAGES
        return idf * (repeated / (frequency + PRIOR_PASSAGES)) ** REPETITION_EXPONENT

    def _looked_up(self, values: NDArray[np.int32], numbers: NDArray[np.uint32]) -> NDArray[np.int32]:
        if not self.terms.size:
            return np.zeros(numbers.size, np.int32)
        spots = np.minimum(np.searchsorted(self.terms, numbers), self.terms.size - 1)
        return np.where(self.terms[spots] == numbers, values[spots], 0).astype(np.int32)


def _tallied(
    passages: Sequence[MeasuredPassage],
) -> tuple[NDArray[np.uint32], NDArray[np.intp], NDArray[np.intp]]:
    """The terms of passages, ascending, how many passages hold each, and how many repeat it."""
    nothing = np.empty(0, np.uint32)
    terms, counts = np.unique(np.concatenate([nothing, *(held for held, _, _ in passages)]), return_counts=True)
    often = np.concatenate([nothing, *(repeated for _, repeated, _ in passages)])
    return terms, counts, np.bincount(np.searchsorted(terms, often), minlength=terms.size)
