"""Texts as TF-IDF vectors of unit length, kept as one posting list per term."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MIN_KNOWN = 0.6  # minimum known share of a length, so that a few known terms of a strange text do not match
MAX_COUNT = 255  # of one term in one text; more add nothing

_DAMPED = np.concatenate(([0.0], 1 + np.log(np.arange(1, MAX_COUNT + 1))))


@dataclass(frozen=True, slots=True)
class Postings:
    """The vectors of texts. A search reads only the posting lists of its own terms.

    `terms` are distinct ascending term numbers. Posting list `i` belongs to `terms[i]`: `rows[starts[i]:starts[i + 1]]`
    are the texts that contain it, ascending, and the same slice of `counts` is how often. `lengths[j]` is the length of
    vector `j` before normalisation. A posting takes three bytes for up to 65 536 texts.
    """

    terms: NDArray[np.uint32]
    starts: NDArray[np.int64]
    rows: NDArray[np.unsignedinteger]
    counts: NDArray[np.uint8]
    lengths: NDArray[np.float64]

    @classmethod
    def of(cls, texts: Iterable[Mapping[str, int]]) -> Self:
        """Return the postings of texts, given as term counts."""
        rows, numbers, counts = array("I"), array("I"), array("B")
        size = 0
        for row, text in enumerate(texts):
            size = row + 1
            for term, count in text.items():
                rows.append(row)
                numbers.append(_number(term))
                counts.append(min(count, MAX_COUNT))
        order = np.argsort(np.asarray(numbers, np.uint32), kind="stable")
        terms, frequencies = np.unique(np.asarray(numbers, np.uint32), return_counts=True)
        held = np.asarray(rows, np.uint32)[order].astype(np.min_scalar_type(max(size - 1, 0)))
        seen = np.asarray(counts, np.uint8)[order]
        weights = _DAMPED[seen] * np.repeat(_idf(frequencies, size), frequencies)
        lengths = np.sqrt(np.bincount(held, weights**2, minlength=size))
        return cls(terms, np.concatenate(([0], np.cumsum(frequencies))), held, seen, lengths)

    @property
    def size(self) -> int:
        """Return the number of texts."""
        return len(self.lengths)

    def similarities(self, text: Mapping[str, int], *, unknown: bool = True) -> NDArray[np.float64]:
        """Return the cosine of a text with each of the texts, in [0, 1], shape (size,).

        Terms that no text contains lower the similarity; without `unknown`, only if they are most of the text.
        """
        scores = np.zeros(self.size, np.float64)
        if not text or not self.terms.size:
            return scores
        numbers = np.array([_number(term) for term in text], np.uint32)
        places = np.minimum(np.searchsorted(self.terms, numbers), self.terms.size - 1)
        starts, ends = self.starts[places], self.starts[places + 1]
        frequencies = np.where(self.terms[places] == numbers, ends - starts, 0)
        idf = _idf(frequencies, self.size)
        weights = _DAMPED[np.minimum(list(text.values()), MAX_COUNT)] * idf
        for number in np.flatnonzero(frequencies):
            postings = slice(starts[number], ends[number])
            scores[self.rows[postings]] += weights[number] * idf[number] * _DAMPED[self.counts[postings]]
        whole, indexed = np.linalg.norm(weights), np.linalg.norm(weights[frequencies > 0])
        longest = self.lengths * (whole if unknown else max(indexed, MIN_KNOWN * whole))
        return np.minimum(np.divide(scores, longest, out=np.zeros_like(scores), where=longest > 0), 1.0)

    def matrix(self) -> csr_array:
        """Return the vectors, one row for each text and one column for each term."""
        from scipy.sparse import csc_array  # only a fit needs it

        frequencies = np.diff(self.starts)
        weights = _DAMPED[self.counts] * np.repeat(_idf(frequencies, self.size), frequencies) / self.lengths[self.rows]
        shape = (self.size, len(self.terms))
        indices = self.rows.astype(np.int32), self.starts.astype(np.int32)
        return csc_array((weights.astype(np.float32), *indices), shape=shape).tocsr()


def _number(term: str) -> int:
    """Return the number of a term; not cached like `term_number`, because there are far more sequences than words."""
    return zlib.crc32(term.encode("utf-8", "surrogatepass"))


def _idf(frequencies: NDArray[np.integer], size: int) -> NDArray[np.float64]:
    return np.log((1 + size) / (1 + frequencies)) + 1
