"""A long log in chunks of neighbouring lines that speak of one thing (RCAgent, algorithm 1, lines 1 to 10)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import accumulate, groupby, pairwise
from math import exp
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from core.knowledge.terms import terms
from core.rca.log_templates import MASK, masked

if TYPE_CHECKING:  # 14 MB that a bot without a model never needs
    from scipy.sparse import csr_array

WINDOW = 200  # lines that two lines may be apart (line 4)
NEGLIGIBLE = 1e-6  # weight of an edge that changes no cluster: with exp(-d), of lines 14 apart
REPEATED = 3  # lines of one template that are kept of a long log, the first ones
SHORT = 2_000  # lines of a log from which repetitions are left out
_STEPS = [step for step in range(1, WINDOW + 1) if exp(-step) >= NEGLIGIBLE]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Lines `start` to `end` (exclusive) of a log. `rarity` is above 0, the more for lines that occur seldom."""

    start: int
    end: int
    lines: tuple[str, ...]
    rarity: float

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def chunked(lines: Sequence[str], vectors: NDArray[np.float32] | None = None) -> list[Chunk]:
    """The lines in chunks, in their order and without a gap; repetitions in a log above SHORT lines are left out.

    Lines that are equal but for numbers are one template and embedded once: `vectors` has a row of unit length for each
    of `templates_of(lines)`, else the terms stand for the meaning. 100 000 lines take a few seconds.
    """
    if not lines:
        return []
    names = templates_of(lines)
    number_of = {name: number for number, name in enumerate(names)}
    numbers = np.array([number_of[masked(line)] for line in lines])
    counts = np.bincount(numbers, minlength=len(names))
    kept: list[int] = (np.arange(len(lines)) if len(lines) <= SHORT else _without_repetitions(numbers)).tolist()
    labels = _clusters(numbers[kept], _embedded(names, vectors))
    rarities: list[float] = (1.0 / counts[numbers]).tolist()
    return [_chunk(lines, kept[start:end], rarities) for start, end in _spans(labels)]


def templates_of(lines: Sequence[str]) -> list[str]:
    """The distinct lines, numbers left out, in order of their first appearance: what is to be embedded."""
    return list(dict.fromkeys(masked(line) for line in lines))


def _chunk(lines: Sequence[str], places: Sequence[int], rarities: Sequence[float]) -> Chunk:
    return Chunk(
        places[0], places[-1] + 1, tuple(lines[place] for place in places), sum(rarities[place] for place in places)
    )


def _without_repetitions(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places of the first REPEATED lines of each template, in order."""
    by_template = np.argsort(numbers, kind="stable")
    ordered = numbers[by_template]
    first_of_template = np.searchsorted(ordered, ordered, side="left")
    return np.sort(by_template[np.arange(len(ordered)) - first_of_template < REPEATED])


def _embedded(names: Sequence[str], vectors: NDArray[np.float32] | None) -> csr_array:
    """The vectors of the templates, else their TF-IDF weights, in rows of unit length; without words a row of zeros."""
    from scipy.sparse import csr_array

    if vectors is not None:
        return csr_array(vectors)
    words = [Counter(terms(name.replace(MASK, " "))) for name in names]
    columns = {word: column for column, word in enumerate(dict.fromkeys(word for row in words for word in row))}
    frequency = Counter(word for row in words for word in row)
    weighted = [{columns[word]: count / frequency[word] ** 0.5 for word, count in row.items()} for row in words]
    lengths = [sum(weight**2 for weight in row.values()) ** 0.5 for row in weighted]
    values = [weight / length for row, length in zip(weighted, lengths, strict=True) for weight in row.values()]
    ends = np.cumsum([0, *(len(row) for row in weighted)])
    return csr_array((values, [column for row in weighted for column in row], ends), shape=(len(names), len(columns)))


def _clusters(numbers: NDArray[np.int64], vectors: csr_array) -> list[int]:
    """The cluster of each line: Louvain communities of the lines, weighted by similarity and nearness (lines 3 to 8)."""
    edges: list[NDArray[np.int64]] = []
    weights: list[NDArray[np.float64]] = []
    for step in _STEPS:
        left = np.arange(len(numbers) - step)
        if not left.size:
            break
        weight = _similarity(numbers[:-step], numbers[step:], vectors) * exp(-step)
        linked = weight >= NEGLIGIBLE
        edges.append(np.column_stack([left[linked], left[linked] + step]))
        weights.append(weight[linked])
    if not edges:
        return [0] * len(numbers)
    igraph: Any = import_module("igraph")  # it has no types, and takes its time to load
    igraph.set_random_number_generator(random.Random(0))  # the same log has always the same chunks
    graph = igraph.Graph(n=len(numbers), edges=np.concatenate(edges))
    return cast("list[int]", graph.community_multilevel(weights=np.concatenate(weights)).membership)


def _similarity(one: NDArray[np.int64], other: NDArray[np.int64], vectors: csr_array) -> NDArray[np.float64]:
    """The cosine of each pair of templates, in [0, 1]; every pair is computed once, however often it occurs."""
    pairs, which = np.unique(np.column_stack([one, other]), axis=0, return_inverse=True)
    cosines = np.asarray((vectors[pairs[:, 0]] * vectors[pairs[:, 1]]).sum(axis=1), dtype=np.float64)
    cosines[pairs[:, 0] == pairs[:, 1]] = 1.0
    return np.clip(cosines, 0.0, 1.0)[which.reshape(-1)]


def _spans(labels: Sequence[int]) -> list[tuple[int, int]]:
    """Start and end of each run of equal labels; a shorter run between two of one label does not part them (line 9)."""
    runs: list[tuple[int, int]] = []  # label and length
    for label, members in groupby(labels):
        length = sum(1 for _ in members)
        if len(runs) > 1 and runs[-2][0] == label and runs[-1][1] <= min(runs[-2][1], length):
            length += runs.pop()[1] + runs.pop()[1]
        runs.append((label, length))
    return list(pairwise([0, *accumulate(length for _, length in runs)]))
