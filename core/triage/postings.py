"""Texts as TF-IDF vectors of unit length, kept as one posting list per term."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, slots=True)
class Postings:
    """The vectors of `size` texts. A search reads only the posting lists of its own terms.

    Posting list `i` belongs to the term with column `i`: `rows[starts[i]:starts[i + 1]]` are the texts that hold it,
    ascending, and `weights` of the same slice its weight in each.
    """

    size: int
    vocabulary: Mapping[str, int]
    idf: NDArray[np.float64]
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    weights: NDArray[np.float32]

    @classmethod
    def of(cls, texts: Iterable[Mapping[str, int]]) -> Self:
        """Of texts as term counts."""
        rows, columns, counts = array("i"), array("i"), array("i")
        vocabulary: dict[str, int] = {}
        size = 0
        for row, text in enumerate(texts):
            size = row + 1
            for term, count in text.items():
                rows.append(row)
                columns.append(vocabulary.setdefault(term, len(vocabulary)))
                counts.append(count)
        order = np.argsort(np.asarray(columns, np.int32), kind="stable")
        ordered = np.asarray(rows, np.int32)[order]
        frequencies = np.bincount(np.asarray(columns, np.int32), minlength=len(vocabulary))
        idf = np.log((1 + size) / (1 + frequencies)) + 1
        weights = (1 + np.log(np.asarray(counts, np.float64)[order])) * np.repeat(idf, frequencies)
        lengths = np.sqrt(np.bincount(ordered, weights**2, minlength=size))
        return cls(
            size,
            vocabulary,
            idf,
            np.concatenate(([0], np.cumsum(frequencies))),
            ordered,
            (weights / lengths[ordered]).astype(np.float32),
        )

    def similarities(self, text: Mapping[str, int]) -> NDArray[np.float64]:
        """The cosine of a text with each of the texts, in [0, 1], shape (size,). Unknown terms make it less like any."""
        scores = np.zeros(self.size, np.float64)
        length = 0.0
        unknown = np.log(1 + self.size) + 1
        for term, count in text.items():
            column = self.vocabulary.get(term)
            weight = (1 + np.log(count)) * (self.idf[column] if column is not None else unknown)
            length += float(weight) ** 2
            if column is not None:
                postings = slice(self.starts[column], self.starts[column + 1])
                scores[self.rows[postings]] += weight * self.weights[postings]
        return np.minimum(scores / length**0.5, 1.0) if length else scores

    def matrix(self) -> csr_array:
        """One row a text, one column a term."""
        from scipy.sparse import csc_array  # only a fit needs it

        return csc_array((self.weights, self.rows, self.starts), shape=(self.size, len(self.vocabulary))).tocsr()
