"""Text → character n-grams: they need no segmentation, so they read Chinese and identifiers alike."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from core.knowledge.terms import normalised

if TYPE_CHECKING:
    from collections.abc import Sequence

SHORTEST, LONGEST = 2, 4  # characters (Evidence-Chain RAG, Table III)

_RUN = re.compile(r"[a-z0-9]+|[^\W_a-z0-9]+")  # n-grams stay within one script: 在AMF上 is three runs

CountedGrams = tuple[NDArray[np.uint32], NDArray[np.intp]]
"""The distinct numbers of the n-grams of a text, ascending, and how often each occurs."""


@dataclass(frozen=True, slots=True)
class GramWeights:
    """TF-IDF over the n-grams of a corpus of texts.

    `features` are distinct ascending numbers, `rarity[i]` is that of `features[i]`, and `unknown` that of all others.
    """

    features: NDArray[np.uint32]
    rarity: NDArray[np.float32]
    unknown: float

    @classmethod
    def fitted(cls, texts: Sequence[CountedGrams]) -> Self:
        features, frequency = np.unique(np.concatenate([numbers for numbers, _ in texts]), return_counts=True)
        most = np.log(1 + len(texts)) + 1
        return cls(features, (most - np.log(1 + frequency)).astype(np.float32), float(most))

    def only(self, kept: NDArray[np.intp]) -> Self:
        """Without the features that are not kept; these ascend."""
        return type(self)(self.features[kept], self.rarity[kept], self.unknown)

    def row(self, counted: CountedGrams) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Where a text's n-grams stand in `features`, and their weights.

        They are of unit length together with those that are unknown, which count against the text but are left out.
        """
        numbers, counts = counted
        spots = np.minimum(np.searchsorted(self.features, numbers), max(0, self.features.size - 1))
        known = self.features[spots] == numbers if self.features.size else np.zeros(numbers.size, bool)
        rarity = np.full(numbers.size, self.unknown)
        rarity[known] = self.rarity[spots[known]]
        values = (1 + np.log(counts)) * rarity
        length = float(np.linalg.norm(values))
        return spots[known], values[known] / (length or 1.0)


def counted_grams(text: str) -> CountedGrams:
    """The n-grams of every run of one script, Latin words with their edges marked."""
    runs = [f"<{run}>" if run.isascii() else run for run in _RUN.findall(normalised(text).lower())]
    grams = Counter(
        run[start : start + length]
        for run in runs
        for length in range(SHORTEST, LONGEST + 1)
        for start in range(len(run) - length + 1)
    )
    numbers = np.fromiter((zlib.crc32(gram.encode()) for gram in grams), np.uint32, len(grams))
    order = np.argsort(numbers)
    return numbers[order], np.fromiter(grams.values(), np.intp, len(grams))[order]
