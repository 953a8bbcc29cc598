"""The graph of the calls between services."""

from __future__ import annotations

from collections.abc import Iterable


def graph_of(calls: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the services that each caller calls, sorted by name. Calls of a service to itself are left out."""
    graph: dict[str, set[str]] = {}
    for caller, callee in calls:
        if caller and callee and caller != callee:
            graph.setdefault(caller, set()).add(callee)
    return {caller: tuple(sorted(callees)) for caller, callees in sorted(graph.items())}
