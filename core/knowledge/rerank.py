"""What a closer look at a candidate says: its best spot, and the order and nearness of the query's words there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq

from core.knowledge.lexical import K1, TITLE_WEIGHT, B
from core.knowledge.occurrences import Occurrences
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


def closeness(query: WeightedQuery, passages: Sequence[WindowedPassage]) -> list[Closeness]:
    """Compare a query with passages, in their order."""
    if not (query.numbers.size and passages):
        return [Closeness(0.0, 0.0, 0.0, 0.0, 0.0)] * len(passages)
    total = query.total
    found = Occurrences.of(query.numbers, [passage.numbers for passage in passages])
    windows = [len(passage.bounds) for passage in passages]
    first = np.cumsum([0, *windows[:-1]])
    frequency = _frequency(found, passages, windows)
    scores = (_saturated(frequency, passages) * query.weights).sum(axis=1)  # the same whatever stands beside a passage
    best = np.maximum.reduceat(scores, first).tolist()
    held = np.logical_or.reduceat(frequency > 0, first, axis=0)
    coverage = (np.where(held, query.weights, 0.0).sum(axis=1) / total).tolist()
    said = _Said.of(query, found, passages)
    return [
        Closeness(
            window=window,
            focus=window / ((K1 + 1) * total),
            coverage=covered,
            pairs=together,
            order=LCSseq.similarity(query.order, text) / len(query.order),
        )
        for window, covered, together, text in zip(best, coverage, said.pairs(query.pairs), said.texts(), strict=True)
    ]


def _frequency(found: Occurrences, passages: Sequence[WindowedPassage], windows: Sequence[int]) -> NDArray[np.float64]:
    """How often each term of the query (a column) stands in each window (a row), with its heading and the title.

    `windows` is how many windows each passage has.
    """
    bounds = np.concatenate([passage.bounds for passage in passages]) + np.repeat(found.starts, windows)[:, None]
    said = found.counts(bounds.reshape(-1, 2)).reshape(-1, 2, found.terms).sum(axis=1)  # in the text and the heading
    titles = np.column_stack([found.starts, found.starts + [passage.title_end for passage in passages]])
    return said + np.repeat(TITLE_WEIGHT * found.counts(titles), windows, axis=0)


def _saturated(frequency: NDArray[np.float64], passages: Sequence[WindowedPassage]) -> NDArray[np.float64]:
    """The weights of BM25 for these frequencies, one window a row."""
    start, end, heading_start, heading_end = np.concatenate([passage.bounds for passage in passages]).T.astype(
        np.float64
    )
    titles = np.repeat([passage.title_end for passage in passages], [len(passage.bounds) for passage in passages])
    lengths = end - start + heading_end - heading_start + TITLE_WEIGHT * titles
    norm = K1 * (1 - B + B * lengths / AVERAGE_LENGTH)
    return frequency * (K1 + 1) / (frequency + norm[:, None])


@dataclass(frozen=True, slots=True)
class _Said:
    """The terms of the query in the texts of passages, one text after the other.

    The k-th text holds those from `ends[k - 1]` to `ends[k]`, the first from 0. `positions`, in words, never descend, and
    those of two texts lie more than ADJACENT apart.
    """

    numbers: NDArray[np.uint32]
    positions: NDArray[np.intp]
    ends: NDArray[np.intp]

    @classmethod
    def of(cls, query: WeightedQuery, found: Occurrences, passages: Sequence[WindowedPassage]) -> Self:
        starts = found.starts + [passage.text_start for passage in passages]
        owners = np.searchsorted(found.starts, found.places, side="right") - 1
        in_text = found.places >= starts[owners]
        owners, places = owners[in_text], found.places[in_text]
        gaps = [passage.gaps for passage in passages]
        first = np.cumsum([0, *(each.size for each in gaps[:-1])])
        positions = np.cumsum(np.concatenate(gaps), dtype=np.intp)[places + (first - starts)[owners]]
        ends = np.searchsorted(owners, np.arange(len(passages)), side="right")
        return cls(query.numbers[found.spots[in_text]], positions + (ADJACENT + 1) * owners, ends)

    def texts(self) -> list[list[int]]:
        numbers: list[int] = self.numbers.tolist()
        return [numbers[begin:end] for begin, end in pairwise([0, *self.ends.tolist()])]

    def pairs(self, pairs: Sequence[tuple[int, int]]) -> list[float]:
        """Of each text, the share of these pairs whose second term stands where the first does or soon after it."""
        spots = {number: np.flatnonzero(self.numbers == number) for number in {*chain.from_iterable(pairs)}}
        together = np.zeros(self.ends.size)
        for first, second in pairs:
            begins, follows = self.positions[spots[first]], self.positions[spots[second]]
            near = np.searchsorted(follows, begins) < np.searchsorted(follows, begins + ADJACENT, side="right")
            together[np.searchsorted(self.ends, spots[first][near], side="right")] += 1  # once, however often they do
        return (together / max(1, len(pairs))).tolist()
