"""What a closer look at a candidate says: its best spot, and the order and nearness of the query's words there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq

from core.knowledge.lexical import K1
from core.knowledge.statistics import term_number
from core.knowledge.terms import Token
from core.knowledge.windows import WindowedPassage

ADJACENT = 2  # words apart at most that two neighbouring words of the query may stand

# Chosen on headings and opening sentences of public documentation, each asked as a question after it was removed from
# its page. They are broad: halving or doubling any of them moves recall by less than the interval of the measure.
LEXICAL_WEIGHT = 1.0
WINDOW_WEIGHT = 0.7
DENSE_WEIGHT = 0.6  # times the share of the query that the dense model represents
PAIR_WEIGHT = 0.3
ORDER_WEIGHT = 0.1


@dataclass(frozen=True, slots=True)
class WeightedQuery:
    """The distinct term numbers of a query, ascending, with their weights (idf); its terms in order; and its word pairs.

    A pair is two neighbouring words, each as its first term's number.
    """

    numbers: NDArray[np.uint32]
    weights: NDArray[np.float64]
    order: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]

    @property
    def total(self) -> float:
        return float(self.weights.sum()) or 1.0


@dataclass(frozen=True, slots=True)
class Closeness:
    """`window` is the BM25 score of the best window. The others are in [0, 1].

    `focus`: that score as a share of the most that any window could reach. `coverage`: share of the query's term weight that passage or title holds. `pairs`: share of the query's
    neighbouring words that stand together here. `order`: longest common subsequence, as a share of the query.
    """

    window: float
    focus: float
    coverage: float
    pairs: float
    order: float


def weighted(tokens: Sequence[Token], weights: Mapping[str, float]) -> WeightedQuery:
    """Prepare a query, given as its tokens and the weight of each of their terms."""
    by_number = {term_number(term): weight for term, weight in weights.items()}
    numbers = np.array(sorted(by_number), np.uint32)
    firsts = [term_number(token.terms[0]) for token in tokens]
    return WeightedQuery(
        numbers,
        np.array([by_number[int(number)] for number in numbers], np.float64),
        tuple(dict.fromkeys(term_number(term) for token in tokens for term in token.terms)),
        tuple((first, second) for first, second in pairwise(firsts) if first != second),
    )


def closeness(query: WeightedQuery, passage: WindowedPassage) -> Closeness:
    """Compare a query with a passage."""
    if not query.numbers.size:
        return Closeness(0.0, 0.0, 0.0, 0.0, 0.0)
    spots, known = _found(query.numbers, passage.numbers)
    scores = np.bincount(
        passage.windows[known], query.weights[spots[known]] * passage.weights[known], minlength=passage.count
    )
    _, in_text = _found(query.numbers, passage.text_numbers)
    text = passage.text_numbers[in_text].tolist()
    best = float(scores.max())
    return Closeness(
        window=best,
        focus=best / ((K1 + 1) * query.total),
        coverage=float(query.weights[np.unique(spots[known])].sum()) / query.total,
        pairs=_pairs(query.pairs, text, passage.positions[in_text].tolist()),
        order=LCSseq.similarity(query.order, text) / len(query.order),
    )


def _found(numbers: NDArray[np.uint32], wanted: NDArray[np.uint32]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Where each of `wanted` stands in the ascending `numbers`, and whether it does."""
    spots = np.minimum(np.searchsorted(numbers, wanted), numbers.size - 1)
    return spots, numbers[spots] == wanted


def _pairs(pairs: Sequence[tuple[int, int]], text: Sequence[int], positions: Sequence[int]) -> float:
    if not pairs:
        return 0.0
    spots: dict[int, set[int]] = {}
    for number, position in zip(text, positions, strict=True):
        spots.setdefault(number, set()).add(position)

    def together(first: int, second: int) -> bool:
        after = spots.get(second, set[int]())
        return any(not after.isdisjoint(range(at, at + ADJACENT + 1)) for at in spots.get(first, ()))

    return sum(together(*pair) for pair in pairs) / len(pairs)
