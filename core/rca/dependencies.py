"""The calls between services: a fault in a callee explains a symptom in its callers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.model.incident import Incident

MAX_DISTANCE = 3  # calls between a symptom and a cause that is still looked for


def service_of(incident: Incident, dependencies: Mapping[str, tuple[str, ...]]) -> str:
    """The incident's service; where its alerts name none, the first known one in their labels or texts, else empty."""
    if incident.service:
        return incident.service
    known = {*dependencies, *(callee for called in dependencies.values() for callee in called)}
    words = [*incident.labels.values(), *(word.strip(".,:;()'\"") for word in incident.description.split())]
    return next((word for word in words if word in known), "")


def united(graphs: Sequence[Mapping[str, tuple[str, ...]]]) -> dict[str, tuple[str, ...]]:
    """Return every call that one of the graphs has, those of the first graph first."""
    callers = dict.fromkeys(caller for graph in graphs for caller in graph)
    return {
        caller: tuple(dict.fromkeys(callee for graph in graphs for callee in graph.get(caller, ())))
        for caller in callers
    }


def callees(service: str, dependencies: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """Return every service that `service` calls, directly or through others → the number of calls between, at least 1."""
    distances: dict[str, int] = {service: 0}
    frontier = [service]
    for distance in range(1, MAX_DISTANCE + 1):
        frontier = [callee for caller in frontier for callee in dependencies.get(caller, ()) if callee not in distances]
        distances |= dict.fromkeys(frontier, distance)
        frontier = list(dict.fromkeys(frontier))
    del distances[service]
    return distances


def callers(service: str, dependencies: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The services that call `service` directly, in order of the configuration."""
    return [caller for caller, called in dependencies.items() if service in called]


def neighbourhood(service: str, dependencies: Mapping[str, tuple[str, ...]], limit: int) -> list[str]:
    """The services worth reading for a symptom in `service`: itself, its callees nearest first, its direct callers."""
    return list(dict.fromkeys([service, *callees(service, dependencies), *callers(service, dependencies)]))[:limit]
