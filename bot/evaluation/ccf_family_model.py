"""Which family a question is about, learned from texts whose family is known.

Every text speaks for its family as far as it resembles the question, and texts that say the same share one voice: kernel
ridge regression on the families (Rasmussen and Williams 2006, section 2.2 and 6.5), with the cosine of TF-IDF vectors
of character n-grams as kernel. It needs no segmentation, so it reads Chinese and identifiers alike. Nothing is selected:
the mean over several lengths of n-gram and several penalties is about as good as the best of them, and steadier.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from core.knowledge.terms import normalised

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Chosen on headings and titles of tickets in English; the figure moves by less than its interval between them.
LENGTHS = ((1, 3), (2, 4), (1, 5))  # shortest and longest n-gram of each kernel
PENALTIES = (0.1, 0.3, 1.0)  # ridge added to a kernel whose diagonal is 1
REMEMBERED = 10_000  # texts whose n-grams are kept

_RUN = re.compile(r"[a-z0-9]+|[^\W_a-z0-9]+")  # n-grams stay within one script: 在AMF上 is three runs


@dataclass(frozen=True, slots=True)
class FamilyEvidence:
    """What a model says of one question.

    `similarities[i]` in [0, 1] is the mean cosine to the model's i-th text, `shares[j]` in [0, 1] what the j-th family
    has of the evidence; they sum to 1.
    """

    similarities: NDArray[np.float64]
    shares: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FamilyModel:
    """`families` are distinct and sorted.

    `held_out[i]` are the shares that the i-th text would be given by a model of all the others, in closed form
    (Rasmussen and Williams 2006, eq. 5.12); only the rarity of the n-grams is that of all texts.
    """

    families: tuple[str, ...]
    held_out: NDArray[np.float64]
    _kernels: tuple[_Kernel, ...]

    @classmethod
    def fitted(cls, texts: Sequence[str], families: Sequence[str]) -> Self:
        """The model of texts, `families[i]` being that of `texts[i]`: for thousands of texts at most, not more.

        Raises ValueError without texts.
        """
        if not texts:
            raise ValueError("A family model needs texts.")
        names = tuple(sorted(set(families)))
        targets = np.array([[float(family == name) for name in names] for family in families]) - 1 / len(names)
        kernels = tuple(_Kernel.fitted(texts, targets, lengths) for lengths in LENGTHS)
        held_out = np.mean([kernel.held_out for kernel in kernels], axis=0)
        return cls(names, _shares(held_out), kernels)

    def evidence(self, text: str) -> FamilyEvidence:
        """About a millisecond for a question."""
        similarities = [kernel.similarities(text) for kernel in self._kernels]
        scores = [found @ kernel.votes for found, kernel in zip(similarities, self._kernels, strict=True)]
        return FamilyEvidence(np.mean(similarities, axis=0), _shares(np.mean(scores, axis=0)))


@dataclass(frozen=True, slots=True)
class _Kernel:
    """`votes[i, j]` is how far the i-th text, at a similarity of 1, speaks for the j-th family."""

    lengths: tuple[int, int]
    vocabulary: dict[str, int]
    idf: NDArray[np.float64]
    matrix: csr_array
    votes: NDArray[np.float64]
    held_out: NDArray[np.float64]

    @classmethod
    def fitted(cls, texts: Sequence[str], targets: NDArray[np.float64], lengths: tuple[int, int]) -> Self:
        # Only a fit needs it: half a second of import that a running bot is spared.
        from scipy.sparse import csr_array

        counted = [_grams(text, *lengths) for text in texts]
        frequency = Counter(gram for grams in counted for gram in grams)
        vocabulary = {gram: column for column, gram in enumerate(frequency)}
        # one entry more, for all that no text holds: it weighs as much as the rarest could
        idf = np.log((1 + len(texts)) / (1 + np.array([*frequency.values(), 0.0]))) + 1
        rows = [_weights(grams, vocabulary, idf) for grams in counted]
        matrix = csr_array(
            (
                np.concatenate([values for _, values in rows]),
                np.concatenate([columns for columns, _ in rows]),
                np.cumsum([0, *(columns.size for columns, _ in rows)]),
            ),
            shape=(len(texts), len(idf)),
        )
        values, vectors = np.linalg.eigh((matrix @ matrix.T).toarray())
        inverses = [(vectors / (np.maximum(values, 0.0) + penalty)) @ vectors.T for penalty in PENALTIES]
        votes = [inverse @ targets for inverse in inverses]
        held_out = [targets - vote / np.diag(inverse)[:, None] for vote, inverse in zip(votes, inverses, strict=True)]
        return cls(lengths, vocabulary, idf, matrix, np.mean(votes, axis=0), np.mean(held_out, axis=0))

    def similarities(self, text: str) -> NDArray[np.float64]:
        """The cosine of a text to each of the model's; what none of them holds counts against all."""
        columns, values = _weights(_grams(text, *self.lengths), self.vocabulary, self.idf)
        known = columns < len(self.vocabulary)
        vector = np.zeros(len(self.idf))
        vector[columns[known]] = values[known]
        return self.matrix @ vector


def _shares(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores around 0 (the mean of a family that nothing is known of) → shares of the evidence along the last axis."""
    evidence = np.maximum(scores + 1 / scores.shape[-1], 0.0)
    return evidence / evidence.sum(axis=-1, keepdims=True)


def _weights(
    grams: dict[str, int], vocabulary: dict[str, int], idf: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The columns of a text's n-grams and their TF-IDF weights, together of unit length; unknown ones: the last."""
    columns = np.array([vocabulary.get(gram, len(vocabulary)) for gram in grams], np.intp)
    values = (1 + np.log(np.fromiter(grams.values(), float, len(grams)))) * idf[columns]
    length = float(np.linalg.norm(values))
    return columns, values / length if length else values


@lru_cache(maxsize=REMEMBERED)
def _grams(text: str, shortest: int, longest: int) -> dict[str, int]:
    """The n-grams of every run of one script, Latin words with their edges marked, and how often each occurs."""
    runs = [f"<{run}>" if run.isascii() else run for run in _RUN.findall(normalised(text).lower())]
    return Counter(
        run[start : start + length]
        for run in runs
        for length in range(shortest, longest + 1)
        for start in range(len(run) - length + 1)
    )
