"""Passages and queries → the vectors that the index stores and searches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from core.knowledge.lexical import passage_vector, query_vector, term_counts
from core.knowledge.statistics import MeasuredPassage, TermStatistics
from core.knowledge.terms import terms
from core.model.document import Passage
from core.ports import EncodedPassage, SparseVector

FORMAT = 10  # grows with every change that makes what is stored unusable: tokens, weights
REFIT_SHARE = 0.2  # of the passages changed since the last fit, above which the average length is measured anew


@dataclass(frozen=True, slots=True)
class EncodedQuery:
    """A query as the index is searched for it. `terms` are its terms and how often each occurs."""

    terms: Mapping[str, int]
    lexical: SparseVector


@dataclass(frozen=True, slots=True)
class Encoder:
    """The term statistics of the corpus.

    `statistics` and `families`, the number of passages of each family, are exact at all times. `average_length`, which
    stored vectors depend on, stays as it was until more than REFIT_SHARE of the passages has changed. `settled` is False
    while passages are being written anew after that. `embedder` is the name of the embedding model whose vectors are
    stored too; empty: none are.
    """

    statistics: TermStatistics
    average_length: float
    changed_since_fit: int = 0
    settled: bool = True
    embedder: str = ""
    families: Mapping[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def fitted(cls, passages: Sequence[Passage], embedder: str = "") -> Self:
        """Return the encoder of a corpus, the same in whatever order its passages come."""
        statistics = TermStatistics.empty().changed(_measured(passages), ())
        return cls(statistics, statistics.average_length, embedder=embedder, families=_families(passages))

    def updated(self, added: Sequence[Passage], removed: Sequence[Passage]) -> Self:
        """Return the encoder after these passages came and went; vectors stored before stay valid."""
        return replace(
            self,
            statistics=self.statistics.changed(_measured(added), _measured(removed)),
            changed_since_fit=self.changed_since_fit + max(len(added), len(removed)),
            families=Counter(self.families) + _families(added) - _families(removed),
        )

    @property
    def outdated(self) -> bool:
        return self.changed_since_fit > REFIT_SHARE * max(1, self.statistics.passages)

    def encode_passage(self, passage: Passage) -> EncodedPassage:
        """Return the passage with its term weights and without an embedding."""
        return EncodedPassage(
            passage, passage_vector(term_counts(passage), self.average_length), np.empty(0, np.float32)
        )

    def encode_query(self, text: str) -> EncodedQuery:
        counts = Counter(terms(text))
        return EncodedQuery(counts, query_vector(counts, self.statistics))


def _families(passages: Sequence[Passage]) -> Counter[str]:
    return Counter(passage.family for passage in passages)


def _measured(passages: Sequence[Passage]) -> list[MeasuredPassage]:
    counted = map(term_counts, passages)
    return [(each.numbers, each.repeated, each.length) for each in counted]
