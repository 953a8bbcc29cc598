"""What a closer look at a candidate says: its best spot, and the order and nearness of the query's words there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq

from core.knowledge.lexical import K1, TITLE_WEIGHT, B
from core.knowledge.term_numbers import term_number
from core.knowledge.terms import Token
from core.knowledge.windows import WindowedPassage

AVERAGE_LENGTH = 90.0  # terms of a usual window with its title and heading
ADJACENT = 2  # words apart at most that two neighbouring words of the query may stand

# Chosen on headings and opening sentences of public documentation, each asked as a question after it was removed from
# its page. They are broad: halving or doubling any of them moves recall by less than the interval of the measure.
LEXICAL_WEIGHT = 0.5
WINDOW_WEIGHT = 0.75
DENSE_WEIGHT = 0.3  # times the share of the query that the dense model represents
PAIR_WEIGHT = 0.5
ORDER_WEIGHT = 0.5
WORDING_WEIGHT = 0.4


@dataclass(frozen=True, slots=True)
class WeightedQuery:
    """The distinct term numbers of a query, ascending, with their weights; its terms in order; and its word pairs.

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
    spots = np.minimum(np.searchsorted(query.numbers, passage.numbers), query.numbers.size - 1)
    places = np.flatnonzero(query.numbers[spots] == passage.numbers)
    spots = spots[places]
    frequency = _frequency(spots, places, query.numbers.size, passage)
    best = float((_saturated(frequency, passage) @ query.weights).max())
    in_text = places >= passage.text_start
    text = query.numbers[spots[in_text]].tolist()
    positions = passage.positions[places[in_text] - passage.text_start].tolist()
    return Closeness(
        window=best,
        focus=best / ((K1 + 1) * query.total),
        coverage=float(query.weights[frequency.any(axis=0)].sum()) / query.total,
        pairs=_pairs(query.pairs, text, positions),
        order=LCSseq.similarity(query.order, text) / len(query.order),
    )


def _frequency(
    spots: NDArray[np.intp], places: NDArray[np.intp], terms: int, passage: WindowedPassage
) -> NDArray[np.float64]:
    """How often each term of the query (a column) stands in each window (a row), with its heading and the title.

    The term `spots[i]` of the query stands at `places[i]`, which ascend, of the passage's numbers.
    """
    count = len(passage.bounds)
    bounds = np.searchsorted(places, passage.bounds.reshape(2 * count, 2))  # of the text and of the heading, by turns
    lengths = bounds[:, 1] - bounds[:, 0]
    ends = np.cumsum(lengths)
    held = spots[np.arange(lengths.sum()) + np.repeat(bounds[:, 0] - ends + lengths, lengths)]
    rows = np.repeat(np.arange(2 * count) // 2, lengths)
    in_title = spots[: np.searchsorted(places, passage.title_end)]
    title = TITLE_WEIGHT * np.bincount(in_title, minlength=terms)
    return np.bincount(rows * terms + held, minlength=count * terms).reshape(count, terms) + title


def _saturated(frequency: NDArray[np.float64], passage: WindowedPassage) -> NDArray[np.float64]:
    """The weights of BM25 for these frequencies, one window a row."""
    start, end, heading_start, heading_end = passage.bounds.T.astype(np.float64)
    lengths = end - start + heading_end - heading_start + TITLE_WEIGHT * passage.title_end
    norm = K1 * (1 - B + B * lengths / AVERAGE_LENGTH)
    return frequency * (K1 + 1) / (frequency + norm[:, None])


def _pairs(pairs: Sequence[tuple[int, int]], text: Sequence[int], positions: Sequence[int]) -> float:
    if not pairs:
        return 0.0
    spots: dict[int, set[int]] = {}
    for number, position in zip(text, positions, strict=True):
        spots.setdefault(number, set()).add(position)
    reach = {first: {at + step for at in spots.get(first, ()) for step in range(ADJACENT + 1)} for first, _ in pairs}
    nowhere = set[int]()
    return sum(not reach[first].isdisjoint(spots.get(second, nowhere)) for first, second in pairs) / len(pairs)
