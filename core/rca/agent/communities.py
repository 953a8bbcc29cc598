"""Communities of a weighted graph by the Louvain method (Blondel et al. 2008), which RCAgent partitions a log with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

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
