"""Partition a long log into chunks of neighbouring lines that speak of one thing (RCAgent, algorithm 1, lines 1 to 10).

The chunks are communities of a weighted graph, found by the Louvain method (Blondel et al. 2008).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from math import exp
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from core.knowledge.terms import terms
from core.rca.log_lines import MASK, masked

if TYPE_CHECKING:  # 14 MB that a bot without a model never needs
    from scipy.sparse import csr_array


from collections import defaultdict
from collections.abc import Iterable

WINDOW = 200  # lines that two lines may be apart (line 4)
NEGLIGIBLE = 1e-6  # weight of an edge that changes no cluster: with exp(-d), of lines 14 apart
REPEATED = 3  # lines of one template that are kept of a long log, the first ones
MAX_KEPT = 3_000  # lines that are partitioned, which takes a second
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
    """Return the lines in chunks, in their order and without a gap.

    Of a log above SHORT lines, near-duplicates are left out: of each template, only the first REPEATED lines are kept, and
    of all lines the MAX_KEPT with the rarest templates. `vectors` has a row of unit length for each of
    `templates_of(lines)`, which are embedded once; without them, the terms stand for the meaning.
    """
    if not lines:
        return []
    names = templates_of(lines)
    number_of = {name: number for number, name in enumerate(names)}
    numbers = np.array([number_of[masked(line)] for line in lines])
    counts = np.bincount(numbers, minlength=len(names))
    places = np.arange(len(lines)) if len(lines) <= SHORT else _without_repetitions(numbers)
    rarest = np.argsort(counts[numbers[places]], kind="stable")[:MAX_KEPT]
    kept: list[int] = np.sort(places[rarest]).tolist()
    labels = communities(len(kept), _edges(numbers[kept], _embedded(names, vectors)))  # line 8
    rarities: list[float] = (1.0 / counts[numbers]).tolist()
    return [_chunk(lines, kept[start:end], rarities) for start, end in _spans(labels)]


def templates_of(lines: Sequence[str]) -> list[str]:
    """Return the distinct lines without their numbers, in order of their first appearance, to be embedded."""
    return list(dict.fromkeys(masked(line) for line in lines))


def _chunk(lines: Sequence[str], places: Sequence[int], rarities: Sequence[float]) -> Chunk:
    return Chunk(
        places[0], places[-1] + 1, tuple(lines[place] for place in places), sum(rarities[place] for place in places)
    )


def _without_repetitions(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of the first REPEATED lines of each template, in order."""
    by_template = np.argsort(numbers, kind="stable")
    ordered = numbers[by_template]
    first_of_template = np.searchsorted(ordered, ordered, side="left")
    return np.sort(by_template[np.arange(len(ordered)) - first_of_template < REPEATED])


def _embedded(names: Sequence[str], vectors: NDArray[np.float32] | None) -> csr_array:
    """Return the vectors of the templates, else their TF-IDF weights, in rows of unit length; zeros without words."""
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


def _edges(numbers: NDArray[np.int64], vectors: csr_array) -> Iterator[tuple[int, int, float]]:
    """Yield pairs of lines, weighted by likeness and nearness (lines 3 to 7)."""
    for step in _STEPS:
        if step >= len(numbers):
            return
        weights: list[float] = (_likeness(numbers[:-step], numbers[step:], vectors) * exp(-step)).tolist()
        for left, weight in enumerate(weights):
            if weight >= NEGLIGIBLE:
                yield left, left + step, weight


def _likeness(one: NDArray[np.int64], other: NDArray[np.int64], vectors: csr_array) -> NDArray[np.float64]:
    """Return the cosine of each pair of templates, in [0, 1]. Every pair is computed once, however often it occurs."""
    pairs, which = np.unique(np.column_stack([one, other]), axis=0, return_inverse=True)
    cosines = np.asarray((vectors[pairs[:, 0]] * vectors[pairs[:, 1]]).sum(axis=1), dtype=np.float64)
    cosines[pairs[:, 0] == pairs[:, 1]] = 1.0
    return np.clip(cosines, 0.0, 1.0)[which.reshape(-1)]


def _spans(labels: Sequence[int]) -> list[tuple[int, int]]:
    """Return start and end of each run of equal labels. A shorter run between two of one label parts nothing (line 9)."""
    runs: list[tuple[int, int]] = []  # label and length
    for label, members in groupby(labels):
        length = sum(1 for _ in members)
        if len(runs) > 1 and runs[-2][0] == label and runs[-1][1] <= min(runs[-2][1], length):
            length += runs.pop()[1] + runs.pop()[1]
        runs.append((label, length))
    return list(pairwise([0, *accumulate(length for _, length in runs)]))


MAX_PASSES = 20  # over all nodes of one level; later ones move almost nothing
LEAST_GAIN = 1e-12

Graph = Sequence[
    dict[int, float]
]  # by node: the weight of the edge to each neighbour; to itself: of all edges inside it


def communities(count: int, edges: Iterable[tuple[int, int, float]]) -> list[int]:
    """Return the community of each of `count` nodes. Equal graphs have equal communities."""
    graph: list[dict[int, float]] = [{} for _ in range(count)]
    for one, other, weight in edges:
        graph[one][other] = graph[one].get(other, 0.0) + weight
        graph[other][one] = graph[other].get(one, 0.0) + weight
    members = list(range(count))
    while True:
        labels = _moved(graph)
        size = len(set(labels))
        if size == len(graph):
            return members
        members = [labels[member] for member in members]
        graph = _contracted(graph, labels, size)


def _moved(graph: Graph) -> list[int]:
    """Return the community of each node, from 0, after moving nodes while that increases the modularity."""
    degrees = [sum(edges.values()) for edges in graph]
    total = sum(degrees) or 1.0
    labels, weights = list(range(len(graph))), list(degrees)
    for _ in range(MAX_PASSES):
        has_moved = False
        for node, edges in enumerate(graph):
            own = labels[node]
            weights[own] -= degrees[node]
            near: defaultdict[int, float] = defaultdict(float)
            for other, weight in edges.items():
                if other != node:
                    near[labels[other]] += weight
            gains = {label: weight - degrees[node] * weights[label] / total for label, weight in near.items()}
            best, stay = max(gains, key=gains.__getitem__, default=own), gains.get(own, 0.0)
            labels[node] = best if gains.get(best, 0.0) > stay + LEAST_GAIN else own
            weights[labels[node]] += degrees[node]
            has_moved = has_moved or labels[node] != own
        if not has_moved:
            break
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    return [numbers[label] for label in labels]


def _contracted(graph: Graph, labels: Sequence[int], size: int) -> list[dict[int, float]]:
    """Return the graph whose nodes are the communities."""
    contracted: list[dict[int, float]] = [{} for _ in range(size)]
    for node, edges in enumerate(graph):
        into = contracted[labels[node]]
        for other, weight in edges.items():
            into[labels[other]] = into.get(labels[other], 0.0) + weight
    return contracted
