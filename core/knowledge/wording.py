"""How near the wording of a passage comes to that of a question, word by word as they are written.

Index terms are stemmed and leave out what says nothing by itself. A question keeps some of that: “how do I”, “without”,
“my”, the tense of a verb tell what kind of passage answers it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from core.knowledge.document import Passage
from core.knowledge.occurrences import Occurrences
from core.knowledge.statistics import TermStatistics
from core.knowledge.term_numbers import form_numbers

# Chosen on headings and sentences of public documentation, each asked after it was removed from its page.
RUN = 80  # words that are looked at together
STEP = 40  # words from the start of a run to that of the next

_HEADER = 2  # numbers that a stored wording begins with


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of a passage in order: `numbers` are those of the title, up to `title_end`, and then those of the text.

    `lengths[i]` is the Euclidean length of the TF-IDF weights of the i-th run of the text together with the title.
    """

    numbers: NDArray[np.uint32]
    title_end: int
    lengths: NDArray[np.float32]

    def to_bytes(self) -> bytes:
        header = np.array([self.title_end, len(self.lengths)], "<u4")
        return b"".join(part.tobytes() for part in (header, self.lengths.astype("<f4"), self.numbers.astype("<u4")))

    @classmethod
    def from_bytes(cls, stored: bytes) -> Self:
        """What `to_bytes` wrote. Raises ValueError for anything else."""
        title_end, runs = np.frombuffer(stored, "<u4", _HEADER).tolist()
        lengths = np.frombuffer(stored, "<f4", runs, 4 * _HEADER)
        return cls(np.frombuffer(stored, "<u4", offset=4 * (_HEADER + runs)), title_end, lengths)


@dataclass(frozen=True, slots=True)
class WordedQuery:
    """The distinct words of a query, ascending, with their rarity, and their TF-IDF weights, together of unit length."""

    numbers: NDArray[np.uint32]
    rarity: NDArray[np.float64]
    weights: NDArray[np.float64]


def worded(passage: Passage, statistics: TermStatistics) -> Wording:
    """The wording of a passage in a corpus with these statistics."""
    title = form_numbers(passage.title)
    numbers = np.array([*title, *form_numbers(passage.text)], np.uint32)
    distinct, spots = np.unique(numbers, return_inverse=True)
    rarity = _rarity(distinct, statistics)
    runs = [np.concatenate([spots[: len(title)], spots[start:end]]) for start, end in _runs(len(title), numbers.size)]
    lengths = [np.linalg.norm(_weights(np.bincount(run, minlength=distinct.size), rarity)) for run in runs]
    return Wording(numbers, len(title), np.array(lengths, np.float32))


def worded_query(text: str, statistics: TermStatistics) -> WordedQuery:
    numbers, counts = np.unique(np.array(form_numbers(text), np.uint32), return_counts=True)
    rarity = _rarity(numbers, statistics)
    weights = _weights(counts, rarity)
    return WordedQuery(numbers, rarity, weights / (float(np.linalg.norm(weights)) or 1.0))


def likeness(query: WordedQuery, wordings: Sequence[Wording]) -> list[float]:
    """For each wording, the cosine in [0, 1] of the TF-IDF weights of a query and of the run that is most like it."""
    if not (query.numbers.size and wordings):
        return [0.0] * len(wordings)
    found = Occurrences.of(query.numbers, [wording.numbers for wording in wordings])
    runs = [_runs(wording.title_end, wording.numbers.size) for wording in wordings]
    many = [len(each) for each in runs]
    titles = np.column_stack([found.starts, found.starts + [wording.title_end for wording in wordings]])
    counts = found.counts(np.concatenate(runs) + np.repeat(found.starts, many)[:, None])
    counts += np.repeat(found.counts(titles), many, axis=0)
    lengths = np.maximum(np.concatenate([wording.lengths for wording in wordings]), np.finfo(np.float32).tiny)
    cosines = (_weights(counts, query.rarity) * query.weights).sum(axis=1) / lengths
    return np.maximum.reduceat(cosines, np.cumsum([0, *many[:-1]])).tolist()


def _runs(start: int, end: int) -> Sequence[tuple[int, int]]:
    """Where the runs of a text stand that reaches from `start` to `end`; what the last two would share is one run's."""
    return [(begin, min(begin + RUN, end)) for begin in range(start, max(start + 1, end - STEP // 2), STEP)]


def _rarity(numbers: NDArray[np.uint32], statistics: TermStatistics) -> NDArray[np.float64]:
    """Inverse document frequency, at least 1: a word that every passage holds still counts."""
    return np.log((1 + statistics.passages) / (1 + statistics.frequencies(numbers))) + 1


def _weights(counts: NDArray[np.intp], rarity: NDArray[np.float64]) -> NDArray[np.float64]:
    """TF-IDF with logarithmic frequencies; the last axis of `counts` is one word each."""
    return np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0.0) * rarity
