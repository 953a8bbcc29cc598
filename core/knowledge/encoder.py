"""Passages and queries → the vectors that the index stores and searches, all learned from the corpus itself."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from core.knowledge.document import Passage
from core.knowledge.family_model import FamilyModel
from core.knowledge.latent import SEED, LatentModel
from core.knowledge.lexical import passage_vector, query_vector, term_counts
from core.knowledge.sections import sections
from core.knowledge.statistics import MeasuredPassage, TermStatistics
from core.knowledge.term_numbers import form_numbers, term_numbers
from core.knowledge.terms import terms
from core.knowledge.windows import windowed
from core.knowledge.wording import worded
from core.ports import EncodedPassage, SparseVector

FORMAT = 9  # grows with every change that makes what is stored unusable: tokens, weights, features, windows
MAX_SAMPLE = 20_000  # passages that the latent model is fitted on
REFIT_SHARE = 0.2  # of the passages changed since the last fit, above which the models are fitted anew


@dataclass(frozen=True, slots=True)
class EncodedQuery:
    """A query as the index is searched for it. `terms` are its terms and how often each occurs.

    `fidelity` in [0, 1] says how much of the query the dense vector represents.
    """

    terms: Mapping[str, int]
    lexical: SparseVector
    dense: NDArray[np.float32]
    fidelity: float

    def beside(self, pretrained: NDArray[np.float32]) -> Self:
        """The query with this vector of a pretrained model too, which represents all of it."""
        return replace(self, dense=joined(self.dense, pretrained), fidelity=1.0)


@dataclass(frozen=True, slots=True)
class Encoder:
    """What is known of the corpus.

    `statistics` are exact at all times. The latent model and `average_length`, which stored vectors depend on, and the
    family model, which is of what everybody may read, stay as they were fitted until more than REFIT_SHARE of the passages has changed. `settled` is False while
    passages are being written anew after a fit: then the index may still hold vectors of the model before.
    `embedder` is the name of the pretrained model whose vectors stand beside those of the latent model; empty: none do.
    `families` is the number of passages of each family, exact at all times.
    """

    statistics: TermStatistics
    average_length: float
    latent: LatentModel
    changed_since_fit: int = 0
    settled: bool = True
    embedder: str = ""
    families: Mapping[str, int] = field(default_factory=dict[str, int])
    family_model: FamilyModel = field(default_factory=FamilyModel.empty)

    @classmethod
    def fitted(cls, passages: Sequence[Passage], embedder: str = "") -> Self:
        """The encoder of a corpus, the same in whatever order its passages come.

        Takes seconds for some thousand passages; the latent model sees MAX_SAMPLE at most.
        """
        statistics = TermStatistics.empty().changed(_measured(passages), ())
        described = _sample(passages)
        latent = LatentModel.fitted(
            [passage.indexed_text for passage in described],
            [passage.family for passage in described],
            sections(described),
        )
        return cls(statistics, statistics.average_length, latent, embedder=embedder, families=_families(passages))

    def updated(self, added: Sequence[Passage], removed: Sequence[Passage]) -> Self:
        """The encoder after these passages came and went; vectors stored before stay valid."""
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
        windows = windowed(passage)
        return EncodedPassage(
            passage,
            passage_vector(term_counts(windows), self.average_length),
            self.latent.encode_passage([*term_numbers(passage.prefix), *windows.text.tolist()]),
            windows,
            worded(passage, self.statistics),
        )

    def encode_query(self, text: str) -> EncodedQuery:
        counts = Counter(terms(text))
        dense, fidelity = self.latent.encode_query(text)
        return EncodedQuery(counts, query_vector(counts, self.statistics), dense, fidelity)


def joined(latent: NDArray[np.float32], pretrained: NDArray[np.float32]) -> NDArray[np.float32]:
    """One vector out of two of unit length, also of unit length; the inner product of two such is the mean of theirs.

    One model knows what belongs together here, the other what does so everywhere. With any share from a half to three
    quarters for pretrained word vectors, as many questions found their page.
    """
    return np.concatenate([latent, pretrained]).astype(np.float32) * np.float32(math.sqrt(0.5))


def _families(passages: Sequence[Passage]) -> Counter[str]:
    return Counter(passage.family for passage in passages)


def _measured(passages: Sequence[Passage]) -> list[MeasuredPassage]:
    return [_measure(passage) for passage in passages]


def _measure(passage: Passage) -> MeasuredPassage:
    counted = term_counts(windowed(passage))
    forms = np.unique(np.array(form_numbers(f"{passage.title}\n{passage.text}"), np.uint32))
    return np.union1d(counted.numbers, forms), counted.repeated, counted.length


def _sample(passages: Sequence[Passage]) -> Sequence[Passage]:
    """At most MAX_SAMPLE, in an order of their own."""
    ordered = sorted(passages, key=lambda passage: passage.id)
    if len(ordered) <= MAX_SAMPLE:
        return ordered
    chosen = np.random.default_rng(SEED).choice(len(ordered), MAX_SAMPLE, replace=False)
    places: list[int] = sorted(chosen.tolist())
    return [ordered[place] for place in places]
