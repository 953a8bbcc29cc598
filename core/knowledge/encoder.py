"""Encode passages and queries as the vectors that the index stores and searches: BM25 as an inner product."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from core.knowledge.terms import term_number, term_numbers, terms
from core.model.document import Passage
from core.ports import EncodedPassage, SparseVector

FORMAT = 12  # increased by every change that makes stored data unusable: tokens, weights, splitting of documents
REFIT_SHARE = 0.2  # share of passages changed since the last fit from which the average length is measured again
K1 = 1.2  # saturation of repeated terms
B = 0.75  # discount of long passages, 0 to 1

# Chosen with headings and sentences of public documentation, each removed from its page and used as a query.
USUALLY_REPEATED = 0.4  # prior share of the passages with a term that repeat it
PRIOR_PASSAGES = 3  # weight of that prior, in passages


@dataclass(frozen=True, slots=True)
class TermCounts:
    """The counts of the terms of a passage and its title: `numbers` are distinct and ascend, `counts` are above 0."""

    numbers: NDArray[np.uint32]
    counts: NDArray[np.int_]

    @classmethod
    def of(cls, passage: Passage) -> Self:
        every = np.array([*term_numbers(passage.text), *term_numbers(passage.title)], np.uint32)
        return cls(*np.unique(every, return_counts=True))

    @property
    def length(self) -> int:
        return int(self.counts.sum())

    def vector(self, average_length: float) -> SparseVector:
        """Return the saturated, length-normalised term frequencies of BM25 (Robertson and Zaragoza 2009, section 3.3)."""
        norm = K1 * (1 - B + B * self.length / average_length)
        weights = self.counts * (K1 + 1) / (self.counts + norm)
        return SparseVector(tuple(self.numbers.tolist()), tuple(weights.tolist()))


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """Document frequencies of a corpus, exact.

    `terms` are distinct ascending numbers, `counts[i] > 0` is the number of passages that contain `terms[i]`, and
    `repeated[i]` of those that contain it twice or more. There are `passages` passages, with `total_length` in all.
    """

    terms: NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))
    counts: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    repeated: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    passages: int = 0
    total_length: float = 0.0

    @property
    def average_length(self) -> float:
        """Return the average length, above 0 even if no passage contains a term."""
        return self.total_length / self.passages if self.total_length else 1.0

    def changed(self, added: Sequence[TermCounts], removed: Sequence[TermCounts]) -> Self:
        """Return the statistics after these passages were added and removed."""
        came = [(held, sign) for sign, passages in ((1, added), (-1, removed)) for held in passages]
        numbers = np.concatenate([self.terms, *(held.numbers for held, _ in came)])
        terms, spots = np.unique(numbers, return_inverse=True)
        counts, repeated = (
            np.bincount(
                spots, np.concatenate([before, *(sign * (held.counts >= least) for held, sign in came)]), terms.size
            )
            for before, least in ((self.counts, 1), (self.repeated, 2))
        )
        kept = counts > 0
        return type(self)(
            terms[kept],
            counts[kept].astype(np.int32),
            repeated[kept].astype(np.int32),
            self.passages + len(added) - len(removed),
            self.total_length + sum(sign * held.length for held, sign in came),
        )

    def frequencies(self, numbers: NDArray[np.uint32]) -> NDArray[np.int32]:
        """Return the number of passages that contain each term; 0 for an unknown one."""
        return self._looked_up(self.counts, numbers)

    def weights(self, numbers: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Return the weight of each term, above 0. An unknown term weighs about as much as the rarest.

        The weight is the inverse document frequency of BM25 (Robertson and Zaragoza 2009, eq. 3.4, plus 1). It is
        higher for a term that passages tend to repeat, because they are about it (Church 2000, adaptation).
        """
        frequency = self.frequencies(numbers)
        idf = np.log1p((self.passages - frequency + 0.5) / (frequency + 0.5))
        repeated = self._looked_up(self.repeated, numbers) + USUALLY_REPEATED * PRIOR_PASSAGES
        return idf * np.sqrt(repeated / (frequency + PRIOR_PASSAGES))

    def _looked_up(self, values: NDArray[np.int32], numbers: NDArray[np.uint32]) -> NDArray[np.int32]:
        if not self.terms.size:
            return np.zeros(numbers.size, np.int32)
        spots = np.minimum(np.searchsorted(self.terms, numbers), self.terms.size - 1)
        return np.where(self.terms[spots] == numbers, values[spots], 0).astype(np.int32)


@dataclass(frozen=True, slots=True)
class EncodedQuery:
    """An encoded query. `lexical` contains the weights of those terms that are in any passage.

    `weights` maps every distinct term to its weight, and `counts` to its number in the query. `known` in [0, 1] is the
    share of the weight of terms in the corpus.
    """

    weights: Mapping[str, float]
    counts: Mapping[str, int]
    known: float
    lexical: SparseVector


@dataclass(frozen=True, slots=True)
class Encoder:
    """The term statistics of the corpus.

    `statistics` and `families`, the number of passages of each family, are always exact. `average_length`, on which
    stored vectors depend, is kept until more than REFIT_SHARE of the passages have changed. `settled` is False while
    all passages are rewritten after that. `embedder` is the name of the embedding model whose vectors are also stored,
    empty if there is none; `embedded` is False as long as passages lack them.
    """

    statistics: TermStatistics
    average_length: float
    changed_since_fit: int = 0
    settled: bool = True
    embedder: str = ""
    families: Mapping[str, int] = field(default_factory=dict[str, int])
    embedded: bool = True

    @classmethod
    def fitted(cls, passages: Sequence[Passage], embedder: str = "") -> Self:
        """Return the encoder of a corpus, which does not depend on the order of its passages."""
        statistics = TermStatistics().changed([*map(TermCounts.of, passages)], ())
        return cls(statistics, statistics.average_length, embedder=embedder, families=_families(passages))

    def updated(self, added: Sequence[Passage], removed: Sequence[Passage]) -> Self:
        """Return the encoder after these passages were added and removed. Vectors stored before stay valid."""
        return replace(
            self,
            statistics=self.statistics.changed([*map(TermCounts.of, added)], [*map(TermCounts.of, removed)]),
            changed_since_fit=self.changed_since_fit + max(len(added), len(removed)),
            families=Counter(self.families) + _families(added) - _families(removed),
        )

    @property
    def outdated(self) -> bool:
        return self.changed_since_fit > REFIT_SHARE * max(1, self.statistics.passages)

    def encode_passage(self, passage: Passage) -> EncodedPassage:
        """Return the passage with its term weights and without an embedding."""
        return EncodedPassage(passage, TermCounts.of(passage).vector(self.average_length), np.empty(0, np.float32))

    def encode_query(self, text: str) -> EncodedQuery:
        counts = Counter(terms(text))
        numbers = np.array([term_number(term) for term in counts], np.uint32)
        weights, is_known = self.statistics.weights(numbers), self.statistics.frequencies(numbers) > 0
        total = float(weights.sum())
        lexical = sorted(
            zip(numbers[is_known].tolist(), (weights * [*counts.values()])[is_known].tolist(), strict=True)
        )
        return EncodedQuery(
            dict(zip(counts, weights.tolist(), strict=True)),
            counts,
            float(weights[is_known].sum()) / total if total else 0.0,
            SparseVector(tuple(number for number, _ in lexical), tuple(weight for _, weight in lexical)),
        )


def _families(passages: Sequence[Passage]) -> Counter[str]:
    return Counter(passage.family for passage in passages)
