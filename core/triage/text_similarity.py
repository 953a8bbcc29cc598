"""The similarity of incidents by words and word pairs, and by character sequences of the text and of the title.

If an embedding model is configured, also by its vectors. Texts are TF-IDF vectors of unit length, kept as one posting list
per term.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from core.model.incident import Incident
from core.model.past_incident import PastIncident

if TYPE_CHECKING:
    from scipy.sparse import csr_array


import zlib
from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scipy.sparse import csr_array

GRAMS = range(2, 6)  # lengths in characters; robust to inflection, spelling and broken encodings
MAX_CHARACTERS = 8_000  # read of a text
MAX_EMBEDDED = 2_000  # characters embedded of a text; such models read 128 to 512 tokens
MAX_WORD = 64  # characters; longer runs are encoded data
WORD_CACHE = 10_000  # distinct words whose character sequences are remembered: up to 2 KB each

_WORD = re.compile(r"\w+")

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class IncidentText:
    """The text known when an incident is opened. `text` includes the title."""

    title: str
    text: str

    @property
    def key(self) -> str:
        """Return a key that is equal for incidents with the same words."""
        return " ".join(_words(self.text))

    @property
    def words(self) -> Counter[str]:
        """Return the counts of its words and of its pairs of neighbouring words."""
        words = _words(self.text)
        return Counter([*words, *map(" ".join, pairwise(words))])


@dataclass(frozen=True, slots=True)
class TextSimilarity:
    """The texts of past incidents, to compare others with."""

    words: Postings
    characters: Postings
    titles: Postings

    @classmethod
    def of(cls, texts: Sequence[IncidentText]) -> Self:
        return cls(
            Postings.of(text.words for text in texts),
            Postings.of(_character_counts(text.text) for text in texts),
            Postings.of(_character_counts(text.title) for text in texts),
        )

    def to(self, text: IncidentText) -> NDArray[np.float64]:
        """Return the sum of three cosines with each of the texts, in [0, 3], shape (texts,).

        Unknown terms are mostly ignored, because a linear model would favour the largest team for them.
        """
        return (
            self.words.similarities(text.words, unknown=False)
            + self.characters.similarities(_character_counts(text.text), unknown=False)
            + self.titles.similarities(_character_counts(text.title), unknown=False)
        )

    def matrix(self) -> csr_array:
        """Return one row for each text; the product of two rows is their similarity."""
        from scipy.sparse import hstack

        return hstack([self.words.matrix(), self.characters.matrix(), self.titles.matrix()], format="csr")


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Vectors of unit length by the digest of their text, all from the embedding model with this name."""

    embedder: str
    vectors: Mapping[bytes, Vector]

    def rows(self, digests: Sequence[bytes]) -> NDArray[np.float32]:
        """Return one row for each digest. Raises KeyError for one that was not embedded."""
        return np.stack([self.vectors[digest] for digest in digests], dtype=np.float32)


def embedded_text(incident: Incident | PastIncident) -> str:
    """Return the text known at its opening, without repeated lines and white space, because alerts repeat their title."""
    lines = f"{incident.title}\n{incident.description}\n{incident.service}".splitlines()
    return "\n".join(dict.fromkeys(filter(None, (" ".join(line.split()) for line in lines))))[:MAX_EMBEDDED]


def digest_of(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text[:MAX_CHARACTERS].casefold()) if len(word) <= MAX_WORD]


def _character_counts(text: str) -> Counter[str]:
    return Counter(gram for word in text[:MAX_CHARACTERS].casefold().split() for gram in _grams(word))


@lru_cache(maxsize=WORD_CACHE)
def _grams(word: str) -> tuple[str, ...]:
    """Return the character sequences of a word with its edges marked by blanks."""
    return tuple(_sequences(f" {word[:MAX_WORD]} "))


def _sequences(word: str) -> Iterator[str]:
    for length in GRAMS:
        if len(word) <= length:
            yield word
            return
        for start in range(len(word) - length + 1):
            yield word[start : start + length]


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
