"""A dense encoder that is fitted to the corpus itself: TF-IDF of stems and character n-grams, truncated SVD.

A second opinion beside BM25 that needs no download: it finds passages that use other words of the same company.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from core.knowledge.terms import terms

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DIMENSIONS = 192  # length of a dense vector; a smaller corpus fills the rest with zeros
MAX_FEATURES = 60_000  # most frequent features kept: bounds the memory to 46 MB
MAX_SAMPLE = 20_000  # passages that the model is fitted on
NGRAMS = (3, 4, 5)  # lengths of character n-grams, word boundaries included
FEATURE_CACHE = 100_000  # distinct terms whose features are remembered
OVERSAMPLING = 20  # extra directions of the randomised range finder
POWER_ITERATIONS = 4
EPSILON = 1e-10  # share of the largest squared singular value below which a direction is rounding error
SEED = 7


@dataclass(frozen=True, slots=True)
class LatentModel:
    """`features` are distinct ascending numbers; `idf[i]` and `components[i]` (DIMENSIONS long) belong to `features[i]`.

    `fidelity` in [0, 1] is the share of the corpus' variance that the dimensions keep: near 1 for a small corpus, and
    ever less for a larger one.
    """

    features: NDArray[np.uint32]
    idf: NDArray[np.float32]
    components: NDArray[np.float32]
    fidelity: float

    @classmethod
    def fitted(cls, texts: Sequence[str]) -> Self:
        """The model of a corpus (Halko, Martinsson and Tropp 2011, algorithm 4.4). Deterministic."""
        # Only a fit needs it: half a second of import and 30 MB that a running bot is spared.
        from scipy.sparse import csr_array

        generator = np.random.default_rng(SEED)
        if len(texts) > MAX_SAMPLE:
            texts = [texts[index] for index in sorted(generator.choice(len(texts), MAX_SAMPLE, replace=False))]
        if not texts:
            return cls(np.empty(0, np.uint32), np.empty(0, np.float32), np.empty((0, DIMENSIONS), np.float32), 0.0)
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
        directions, variance = _directions(matrix, generator)
        components = np.zeros((features.size, DIMENSIONS), np.float32)
        components[:, : directions.shape[1]] = directions
        # Every row has unit length, so that the whole variance is the number of rows.
        return cls(features, idf, components, min(1.0, variance / len(texts)))

    def encode(self, text: str) -> NDArray[np.float32]:
        """The vector of a text, of unit length; all zeros if the text shares nothing with the corpus."""
        spots, values = _row(_feature_counts(text), self.features, self.idf)
        vector = values @ self.components[spots]
        length = float(np.linalg.norm(vector))
        return vector / length if length else vector


def _directions(matrix: csr_array, generator: np.random.Generator) -> tuple[NDArray[np.float32], float]:
    """The first right singular vectors as columns, at most DIMENSIONS, and the sum of their squared singular values.

    Only matrices with one row a text are made orthogonal, never those with one row a feature, which are a hundred times
    as long; in double precision the squared condition number that this costs does no harm.
    """
    rank = min(DIMENSIONS, *matrix.shape)
    basis = generator.standard_normal((matrix.shape[1], min(rank + OVERSAMPLING, *matrix.shape)))
    projected = np.linalg.qr(matrix @ basis)[0]
    for _ in range(POWER_ITERATIONS):
        projected = np.linalg.qr(matrix @ (matrix.T @ projected))[0]
    features = matrix.T @ projected
    squares, rotation = np.linalg.eigh(features.T @ features)
    order = np.argsort(-squares)[:rank]
    order = order[squares[order] > EPSILON * squares[order[0]]]
    directions = features @ rotation[:, order] / np.sqrt(squares[order])
    return directions.astype(np.float32), float(squares[order].sum())


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
