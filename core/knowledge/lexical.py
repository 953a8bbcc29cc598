"""BM25 as an inner product: the passage's weights and the query's weights as sparse vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from core.knowledge.document import Passage
from core.knowledge.statistics import TermStatistics, term_number
from core.knowledge.terms import terms
from core.ports import SparseVector

K1 = 1.2  # how soon a repeated term stops to count more
B = 0.75  # how far a long passage is discounted, 0 to 1
TITLE_WEIGHT = 2.0  # occurrences that one in the title counts for


def term_counts(passage: Passage) -> dict[int, float]:
    """Weighted occurrences of each term number in a passage and its title."""
    counts = Counter[int]()
    result: dict[int, float] = {}
    counts.update(map(term_number, terms(passage.text)))
    result.update(counts)
    for term in terms(passage.title):
        number = term_number(term)
        result[number] = result.get(number, 0.0) + TITLE_WEIGHT
    return result


def passage_vector(counts: Mapping[int, float], average_length: float) -> SparseVector:
    """The saturated, length-normalised term frequencies of BM25 (Robertson and Zaragoza 2009, section 3.3)."""
    numbers = sorted(counts)
    frequency = np.array([counts[number] for number in numbers], np.float64)
    norm = K1 * (1 - B + B * frequency.sum() / average_length)
    weights = frequency * (K1 + 1) / (frequency + norm)
    return SparseVector(tuple(numbers), tuple(weights.tolist()))


def query_vector(query_terms: Mapping[str, float], statistics: TermStatistics) -> SparseVector:
    """The weighted inverse document frequencies of a query's terms; terms that no passage holds are left out."""
    by_number = {term_number(term): weight for term, weight in query_terms.items() if weight > 0}
    numbers = np.array(sorted(by_number), np.uint32)
    known = numbers[statistics.frequencies(numbers) > 0]
    weights = statistics.idf(known) * [by_number[int(number)] for number in known]
    return SparseVector(tuple(known.tolist()), tuple(weights.tolist()))
