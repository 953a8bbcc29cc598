"""The graph of calls between services. A fault in a callee explains a symptom in its callers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.model.incident import Incident

MAX_DISTANCE = 3  # most calls between a symptom and its cause


def service_of(incident: Incident, dependencies: Mapping[str, tuple[str, ...]]) -> str:
    """Return the incident's service; if there is none, the first known one in its labels or text; empty if none."""
    if incident.service:
        return incident.service
    services = {*dependencies, *(callee for called in dependencies.values() for callee in called)}
    words = [*incident.labels.values(), *(word.strip(".,:;()'\"") for word in incident.description.split())]
    return next((word for word in words if word in services), "")


def united(graphs: Sequence[Mapping[str, tuple[str, ...]]]) -> dict[str, tuple[str, ...]]:
    """Return the union of the graphs, with the calls of the first graph first."""
    callers = dict.fromkeys(caller for graph in graphs for caller in graph)
    return {
        caller: tuple(dict.fromkeys(callee for graph in graphs for callee in graph.get(caller, ())))
        for caller in callers
    }


def callees(service: str, dependencies: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """Return every direct or indirect callee of `service`, with the number of calls to it, at least 1."""
    distances: dict[str, int] = {service: 0}
    frontier = [service]
    for distance in range(1, MAX_DISTANCE + 1):
        frontier = [callee for caller in frontier for callee in dependencies.get(caller, ()) if callee not in distances]
        distances |= dict.fromkeys(frontier, distance)
        frontier = list(dict.fromkeys(frontier))
    del distances[service]
    return distances


def callers(service: str, dependencies: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return the direct callers of `service`, in order of the configuration."""
    return [caller for caller, called in dependencies.items() if service in called]


def neighbourhood(service: str, dependencies: Mapping[str, tuple[str, ...]], limit: int) -> list[str]:
    """Return the services to read for a symptom in `service`: itself, its callees nearest first, its direct callers."""
    return list(dict.fromkeys([service, *callees(service, dependencies), *callers(service, dependencies)]))[:limit]
