"""A dense encoder that is fitted to the corpus itself: TF-IDF of stemmed words and identifiers, truncated SVD, and, where
the corpus is large enough to teach it, trained to find what its own headings and sentences belong to.

A second opinion beside BM25 that needs no download: it finds passages that use other words of the same company.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from core.knowledge.contrastive import trained
from core.knowledge.sections import Section, pairs
from core.knowledge.term_numbers import term_numbers

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DIMENSIONS = 128  # length of a dense vector; a smaller corpus fills the rest with zeros
RANK = DIMENSIONS - 1  # most directions that are kept; the last dimension holds what they leave out
MAX_FEATURES = 60_000  # most frequent terms kept: bounds the memory to 30 MB
SMALL_CORPUS = 100  # passages below which a term of a single passage is kept: there are few others
SMALL_FAMILY = 30  # passages up to which families count by their size; larger ones all count the same
OVERSAMPLING = 20  # extra directions of the randomised range finder
POWER_ITERATIONS = 4
EPSILON = 1e-10  # share of the largest squared singular value below which a direction is rounding error
MIN_PAIRS = 1_000  # below, there is less to learn than to forget: runbooks alone had 400 and were found less well after
SEED = 7

Counted = tuple[NDArray[np.uint32], NDArray[np.intp]]  # distinct term numbers, ascending, and how often each occurs


@dataclass(frozen=True, slots=True)
class LatentModel:
    """`features` are distinct ascending numbers; `idf[i]` and `components[i]` (RANK long) belong to `features[i]`.

    `trained`: the corpus was large enough to move the components from where the decomposition left them.
    """

    features: NDArray[np.uint32]
    idf: NDArray[np.float32]
    components: NDArray[np.float32]
    trained: bool = False

    @classmethod
    def fitted(cls, texts: Sequence[str], families: Sequence[str], sections: Sequence[Section] = ()) -> Self:
        """The model of a corpus (Halko, Martinsson and Tropp 2011, algorithm 4.4). Deterministic.

        `families[i]` is the family of `texts[i]`. Each family gets the same share of the variance, so that a small
        one (runbooks) is told apart as finely as a large one beside it (a product's whole manual). `sections` train it
        further if at least MIN_PAIRS can be drawn from them.
        """
        generator = np.random.default_rng(SEED)
        if not texts:
            return cls(np.empty(0, np.uint32), np.empty(0, np.float32), np.empty((0, RANK), np.float32))
        counted = [_counted(term_numbers(text)) for text in texts]
        features, frequency = np.unique(np.concatenate([numbers for numbers, _ in counted]), return_counts=True)
        order = np.argsort(-frequency, kind="stable")[:MAX_FEATURES]
        kept = np.sort(order[(frequency[order] > 1) | (len(texts) < SMALL_CORPUS)])
        features = features[kept]
        idf = (np.log((1 + len(texts)) / (1 + frequency[kept])) + 1).astype(np.float32)
        rows = [_row(*row, features, idf) for row in counted]
        sizes = Counter(families)
        weights = [max(sizes[family], SMALL_FAMILY) ** -0.5 for family in families]
        matrix = _matrix(
            [(spots, weight * values) for weight, (spots, values) in zip(weights, rows, strict=True)], features.size
        )
        components = np.zeros((features.size, RANK), np.float32)
        if features.size:
            directions = _directions(matrix, generator)
            components[:, : directions.shape[1]] = directions
        if len(pairs(sections, generator)) < MIN_PAIRS:
            return cls(features, idf, components)
        return cls(features, idf, trained(components, _epochs(sections, features, idf), generator), trained=True)

    def encode_passage(self, numbers: Sequence[int]) -> NDArray[np.float32]:
        """The vector of a passage, given as its term numbers, of unit length.

        Of a model that was not trained, its last number is what the model cannot represent of it, where every query has
        0: a passage that the model knows badly is near to nothing.
        """
        projected = self._projected(numbers)
        if self.trained:
            return _unit(projected)
        return np.append(projected, np.sqrt(max(0.0, 1.0 - float(projected @ projected)))).astype(np.float32)

    def encode_query(self, text: str) -> tuple[NDArray[np.float32], float]:
        """The vector of a query, of unit length, and the share of the query in [0, 1] that the model can represent.

        A trained model knows what its words lead to and represents all of them. All zeros and 0 if the query shares no
        word with the corpus.
        """
        projected = self._projected(term_numbers(text))
        length = float(np.linalg.norm(projected))
        return _unit(projected), min(1.0, length) if not self.trained else float(length > 0)

    def _projected(self, numbers: Sequence[int]) -> NDArray[np.float32]:
        spots, values = _row(*_counted(numbers), self.features, self.idf)
        return values @ self.components[spots]


def _epochs(
    sections: Sequence[Section], features: NDArray[np.uint32], idf: NDArray[np.float32]
) -> Callable[[np.random.Generator], tuple[csr_array, csr_array]]:
    """Draws what is asked in an epoch, and what is left of its texts once it is taken out."""

    @cache  # the texts of all epochs are much the same
    def counted(text: str) -> Counted:
        return _counted(term_numbers(text))

    def drawn(generator: np.random.Generator) -> tuple[csr_array, csr_array]:
        chosen = pairs(sections, generator)
        asked = [_row(*counted(pair.asked), features, idf) for pair in chosen]
        left = [_row(*_without(counted(pair.text), counted(pair.asked)), features, idf) for pair in chosen]
        return _matrix(asked, features.size), _matrix(left, features.size)

    return drawn


def _unit(projected: NDArray[np.float32]) -> NDArray[np.float32]:
    """The vector of DIMENSIONS that points where these RANK numbers do; zeros if they are."""
    length = float(np.linalg.norm(projected))
    return np.append(projected / length if length else projected, np.float32(0.0)).astype(np.float32)


def _matrix(rows: Sequence[tuple[NDArray[np.intp], NDArray[np.float32]]], features: int) -> csr_array:
    """One row for each text, given as the places of its features and their weights."""
    # Only a fit needs it: half a second of import and 30 MB that a running bot is spared.
    from scipy.sparse import csr_array

    return csr_array(
        (
            np.concatenate([values for _, values in rows]),
            np.concatenate([spots for spots, _ in rows]),
            np.cumsum([0, *(spots.size for spots, _ in rows)]),
        ),
        shape=(len(rows), features),
    )


def _directions(matrix: csr_array, generator: np.random.Generator) -> NDArray[np.float32]:
    """The first right singular vectors as columns, at most RANK.

    Only matrices with one row a text are made orthogonal, never those with one row a feature, which are longer; in
    double precision the squared condition number that this costs does no harm.
    """
    rank = min(RANK, *matrix.shape)
    basis = generator.standard_normal((matrix.shape[1], min(rank + OVERSAMPLING, *matrix.shape)))
    projected = np.linalg.qr(matrix @ basis)[0]
    for _ in range(POWER_ITERATIONS):
        projected = np.linalg.qr(matrix @ (matrix.T @ projected))[0]
    features = matrix.T @ projected
    squares, rotation = np.linalg.eigh(features.T @ features)
    order = np.argsort(-squares)[:rank]
    order = order[squares[order] > EPSILON * squares[order[0]]]
    return (features @ rotation[:, order] / np.sqrt(squares[order])).astype(np.float32)


def _row(
    numbers: NDArray[np.uint32], counts: NDArray[np.intp], features: NDArray[np.uint32], idf: NDArray[np.float32]
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Where a text's known features stand in `features`, and their TF-IDF weights, together of unit length."""
    spots, known = _spots(numbers, features)
    values = (1 + np.log(counts[known].astype(np.float32))) * idf[spots]
    length = float(np.linalg.norm(values))
    return spots, values / length if length else values


def _counted(numbers: Sequence[int]) -> Counted:
    return np.unique(np.asarray(numbers, np.uint32), return_counts=True)


def _without(counted: Counted, taken: Counted) -> Counted:
    """What is left once `taken` is taken out as often as it is there."""
    numbers, counts = counted
    spots, there = _spots(taken[0], numbers)
    left = counts.copy()
    left[spots] -= taken[1][there]
    return numbers[left > 0], left[left > 0]


def _spots(wanted: NDArray[np.uint32], numbers: NDArray[np.uint32]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Where those that are wanted stand in `numbers`, both ascending, and which of them do."""
    spots = np.searchsorted(numbers, wanted)
    there = spots < numbers.size
    there[there] = numbers[spots[there]] == wanted[there]
    return spots[there], there
