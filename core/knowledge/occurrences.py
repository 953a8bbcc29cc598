"""Where the words of a query stand in several passages at once: one pass over all costs a tenth of a pass over each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Of `terms` distinct numbers, in texts that are laid end to end.

    The `spots[i]`-th number stands at `places[i]`, which ascend; the k-th text begins at `starts[k]`.
    """

    terms: int
    spots: NDArray[np.intp]
    places: NDArray[np.intp]
    starts: NDArray[np.intp]

    @classmethod
    def of(cls, numbers: NDArray[np.uint32], texts: Sequence[NDArray[np.uint32]]) -> Self:
        """Of `numbers`, which are distinct, ascend, and are one at least."""
        ends = np.cumsum([0, *(text.size for text in texts)])
        said = np.concatenate([numbers[:0], *texts])
        spots = np.minimum(np.searchsorted(numbers, said), numbers.size - 1)
        places = np.flatnonzero(numbers[spots] == said)
        return cls(numbers.size, spots[places], places, ends[:-1])

    def counts(self, spans: NDArray[np.intp]) -> NDArray[np.intp]:
        """How often each number (a column) stands in each span (a row), given as its start and its end."""
        bounds = np.searchsorted(self.places, spans)
        lengths = bounds[:, 1] - bounds[:, 0]
        ends = np.cumsum(lengths)
        held = self.spots[np.arange(lengths.sum()) + np.repeat(bounds[:, 0] - ends + lengths, lengths)]
        rows = np.repeat(np.arange(len(spans)), lengths)
        size = len(spans) * self.terms
        return np.bincount(rows * self.terms + held, minlength=size).reshape(len(spans), self.terms)
