"""Whose words an incident has: complement naive Bayes (Rennie et al. 2003), which is fair to teams of few incidents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from core.triage.postings import Postings

SMOOTHING = 0.3  # added to the texts that hold a term
SPREAD = 0.2  # standard deviation of the scores over the teams

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ComplementBayes:
    """`held[t]` is how many terms the texts of team `t` hold, each counted once a text."""

    held: NDArray[np.int64]

    @classmethod
    def of(cls, words: Postings, owners: NDArray[np.int32], teams: int) -> Self:
        return cls(np.bincount(owners[words.rows], minlength=teams))

    def scores(self, words: Postings, owners: NDArray[np.int32], text: Mapping[str, int]) -> FloatArray:
        """Of each team, shape (teams,): how little the other teams' texts have of the terms; their mean is 0."""
        terms, rows = words.holders(text)
        return self._scores(terms, owners[rows], self.held, len(words.terms))

    def left_out(
        self,
        words: Postings,
        owners: NDArray[np.int32],
        texts: Sequence[Mapping[str, int]],
        same: Sequence[NDArray[np.int64]],
    ) -> FloatArray:
        """The same of the texts themselves, shape (texts, teams), as if the block of each in `same` were not there."""
        sizes = np.bincount(words.rows, minlength=words.size)
        found = np.zeros((len(texts), len(self.held)))
        for block in same:
            held = self.held - np.bincount(owners[block], sizes[block], len(self.held)).astype(np.int64)
            members: list[int] = block.tolist()
            for row in members:
                terms, rows = words.holders(texts[row])
                others = ~np.isin(rows, block)
                found[row] = self._scores(terms[others], owners[rows[others]], held, len(words.terms))
        return found

    def _scores(
        self, terms: NDArray[np.int64], owners: NDArray[np.int32], held: NDArray[np.int64], vocabulary: int
    ) -> FloatArray:
        """`terms[i]` numbers a term of which team `owners[i]` holds one text."""
        _, terms = np.unique(terms, return_inverse=True)
        size, teams = int(terms.max(initial=-1)) + 1, len(held)
        if not size:
            return np.zeros(teams)
        counts = np.bincount(terms * teams + owners, minlength=size * teams).reshape(size, teams)
        elsewhere = counts.sum(axis=1, keepdims=True) - counts + SMOOTHING
        everything = held.sum() - held + SMOOTHING * vocabulary
        scores = np.log(everything) - np.log(elsewhere).mean(axis=0)
        return SPREAD * (scores - scores.mean()) / (scores.std() + 1e-9)
