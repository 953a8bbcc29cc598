"""The similarity of incidents by words and word pairs, and by character sequences of the text and of the title.

If an embedding model is configured, also by its vectors.
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
from core.triage.postings import Postings

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
