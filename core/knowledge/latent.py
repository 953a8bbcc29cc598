"""A dense encoder that is fitted to the corpus itself: TF-IDF of stems and character n-grams, truncated SVD.

A second opinion beside BM25 that needs no download: it finds passages that use other words of the same company.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from core.knowledge.terms import terms

DIMENSIONS = 192  # length of a dense vector; a smaller corpus fills the rest with zeros
MAX_FEATURES = 60_000  # most frequent features kept: bounds the memory to 46 MB
MAX_SAMPLE = 20_000  # passages that the model is fitted on
NGRAMS = (3, 4, 5)  # lengths of character n-grams, word boundaries included
FEATURE_CACHE = 100_000  # distinct terms whose features are remembered
OVERSAMPLING = 20  # extra directions of the randomised range finder
POWER_ITERATIONS = 4
SEED = 7


@dataclass(frozen=True, slots=True)
class LatentModel:
    """`features` are distinct ascending numbers; `idf[i]` and `components[i]` (DIMENSIONS long) belong to `features[i]`."""

    features: NDArray[np.uint32]
    idf: NDArray[np.float32]
    components: NDArray[np.float32]

    @classmethod
    def fitted(cls, texts: Sequence[str]) -> Self:
        """The model of a corpus (Halko, Martinsson and Tropp 2011, algorithm 4.4). Deterministic."""
        # Only a fit needs it: half a second of import and 30 MB that a running bot is spared.
        from scipy.sparse import csr_array  # noqa: PLC0415

        generator = np.random.default_rng(SEED)
        if len(texts) > MAX_SAMPLE:
            texts = [texts[index] for index in sorted(generator.choice(len(texts), MAX_SAMPLE, replace=False))]
        if not texts:
            return cls(np.empty(0, np.uint32), np.empty(0, np.float32), np.empty((0, DIMENSIONS), np.float32))
        counts = [_feature_counts(text) for text in texts]
        frequency = Counter(feature for row in counts for feature in row)
        kept = sorted(feature for feature, n in frequency.most_common(MAX_FEATURES) if n > 1 or len(texts) < 2)
        features = np.array(kept, np.uint32)
        found = np.array([frequency[feature] for feature in kept], np.float32)
        idf = (np.log((1 + len(texts)) / (1 + found)) + 1).astype(np.float32)
        rows = [_row(row, features, idf) for row in counts]
        matrix = csr_array(
            (
                np.concatenate([values for _, values in rows]),
                np.concatenate([spots for spots, _ in rows]),
                np.cumsum([0, *(spots.size for spots, _ in rows)]),
            ),
            shape=(len(texts), features.size),
        )
        rank = min(DIMENSIONS, *matrix.shape)
        basis = generator.standard_normal((features.size, min(rank + OVERSAMPLING, *matrix.shape))).astype(np.float32)
        projected = np.linalg.qr(matrix @ basis)[0]
        for _ in range(POWER_ITERATIONS):
            projected = np.linalg.qr(matrix @ np.linalg.qr(matrix.T @ projected)[0])[0]
        directions = np.linalg.svd((matrix.T @ projected).T, full_matrices=False)[2][:rank]
        components = np.zeros((features.size, DIMENSIONS), np.float32)
        components[:, :rank] = directions.T
        return cls(features, idf, components)

    def encode(self, text: str) -> NDArray[np.float32]:
        """The vector of a text, of unit length; all zeros if the text shares nothing with the corpus."""
        spots, values = _row(_feature_counts(text), self.features, self.idf)
        vector = values @ self.components[spots]
        length = float(np.linalg.norm(vector))
        return vector / length if length else vector


def _row(
    counts: dict[int, int], features: NDArray[np.uint32], idf: NDArray[np.float32]
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Where a text's known features stand in `features`, and their TF-IDF weights, together of unit length."""
    numbers = np.fromiter(counts, np.uint32, len(counts))
    spots = np.searchsorted(features, numbers)
    known = spots < features.size
    known[known] = features[spots[known]] == numbers[known]
    spots = spots[known]
    frequency = np.fromiter(counts.values(), np.float32, len(counts))[known]
    values = (1 + np.log(frequency)) * idf[spots]
    length = float(np.linalg.norm(values))
    return spots, values / length if length else values


def _feature_counts(text: str) -> dict[int, int]:
    counts = Counter[int]()
    for term, occurrences in Counter(terms(text)).items():
        for feature in _features_of(term):
            counts[feature] += occurrences
    return counts


@lru_cache(maxsize=FEATURE_CACHE)
def _features_of(term: str) -> tuple[int, ...]:
    return tuple(zlib.crc32(feature.encode()) for feature in (term, *_ngrams(f"<{term}>")))


def _ngrams(word: str) -> Iterable[str]:
    return (f"#{word[start : start + n]}" for n in NGRAMS for start in range(len(word) - n + 1))
