"""BM25 as an inner product: the passage's weights and the query's weights as sparse vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.knowledge.statistics import TermStatistics
from core.knowledge.term_numbers import term_number, term_numbers
from core.model.document import Passage
from core.ports import SparseVector

K1 = 1.2  # how soon a repeated term stops to count more
B = 0.75  # how far a long passage is discounted, 0 to 1
TITLE_WEIGHT = 2.0  # occurrences that one in the title counts for


@dataclass(frozen=True, slots=True)
class TermCounts:
    """`counts[i]` above 0 is how often the term `numbers[i]` occurs; the numbers are distinct and ascend."""

    numbers: NDArray[np.uint32]
    counts: NDArray[np.float64]

    @property
    def repeated(self) -> NDArray[np.uint32]:
        """The terms that occur more than once, or in the title."""
        return self.numbers[self.counts > 1]

    @property
    def length(self) -> float:
        return float(self.counts.sum())


def term_counts(passage: Passage) -> TermCounts:
    """Return the weighted occurrences of each term of a passage and its title."""
    text, title = term_numbers(passage.text), term_numbers(passage.title)
    numbers, spots = np.unique(np.array([*text, *title], np.uint32), return_inverse=True)
    weights = np.repeat([1.0, TITLE_WEIGHT], [len(text), len(title)])
    return TermCounts(numbers, np.bincount(spots, weights, numbers.size).astype(np.float64))


def passage_vector(counted: TermCounts, average_length: float) -> SparseVector:
    """The saturated, length-normalised term frequencies of BM25 (Robertson and Zaragoza 2009, section 3.3)."""
    norm = K1 * (1 - B + B * counted.length / average_length)
    weights = counted.counts * (K1 + 1) / (counted.counts + norm)
    return SparseVector(tuple(counted.numbers.tolist()), tuple(weights.tolist()))


def query_vector(query_terms: Mapping[str, float], statistics: TermStatistics) -> SparseVector:
    """The weights of a query's terms; terms that no passage holds are left out."""
    by_number = {term_number(term): weight for term, weight in query_terms.items() if weight > 0}
    numbers = np.array(sorted(by_number), np.uint32)
    known = numbers[statistics.frequencies(numbers) > 0]
    weights = statistics.weights(known) * [by_number[int(number)] for number in known]
    return SparseVector(tuple(known.tolist()), tuple(weights.tolist()))
