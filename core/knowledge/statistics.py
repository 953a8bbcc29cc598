"""How many passages hold each term: what makes a rare word weigh more than a common one."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

TERM_CACHE = 200_000  # terms whose number is remembered


@lru_cache(maxsize=TERM_CACHE)
def term_number(term: str) -> int:
    """The term's place in every sparse vector: an unsigned 32-bit hash, the same on every machine."""
    return zlib.crc32(term.encode())


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """Document frequencies of a corpus, exact.

    `terms` are distinct ascending term numbers, `counts[i] > 0` the number of passages that hold `terms[i]`.
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

    def changed(
        self, added: Iterable[tuple[Iterable[int], float]], removed: Iterable[tuple[Iterable[int], float]]
    ) -> Self:
        """The statistics after passages, each given as its distinct term numbers and its length, came and went."""
        numbers, signs = [self.terms], [self.counts]
        passages, length = self.passages, self.total_length
        for sign, group in ((1, added), (-1, removed)):
            for terms, size in group:
                array = np.fromiter(terms, np.uint32)
                numbers.append(array)
                signs.append(np.full(array.size, sign, np.int32))
                passages += sign
                length += sign * size
        unique, inverse = np.unique(np.concatenate(numbers), return_inverse=True)
        counts = np.bincount(inverse, weights=np.concatenate(signs), minlength=unique.size).astype(np.int32)
        kept = counts > 0
        return type(self)(unique[kept], counts[kept], passages, length)

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
