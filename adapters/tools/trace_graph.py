"""Service dependencies as counted by Jaeger and Zipkin from their traces.

https://www.jaegertracing.io/docs/latest/architecture/apis/ and https://zipkin.io/zipkin-api/#/default/get_dependencies
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from pydantic import BaseModel, TypeAdapter

from adapters.http import Http
from core.ports import TimeWindow

MAX_CALLS = 10_000  # pairs of services read


class _Call(BaseModel):
    parent: str
    child: str


class _Answer(BaseModel):
    data: list[_Call] | None = None


_JAEGER = TypeAdapter(_Answer)
_ZIPKIN = TypeAdapter(list[_Call])


class JaegerGraph:
    """DependencyReader over a Jaeger query service."""

    def __init__(self, name: str, http: Http) -> None:
        self.name = name
        self._http = http

    async def dependencies(self, window: TimeWindow) -> dict[str, tuple[str, ...]]:
        answer = await self._http.parsed("api/dependencies", _JAEGER, _asked(window))
        return graph_of((call.parent, call.child) for call in (answer.data or [])[:MAX_CALLS])


class ZipkinGraph:
    """DependencyReader over a Zipkin server."""

    def __init__(self, name: str, http: Http) -> None:
        self.name = name
        self._http = http

    async def dependencies(self, window: TimeWindow) -> dict[str, tuple[str, ...]]:
        calls = await self._http.parsed("api/v2/dependencies", _ZIPKIN, _asked(window))
        return graph_of((call.parent, call.child) for call in calls[:MAX_CALLS])


def graph_of(calls: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the services that each caller calls, sorted by name. Calls of a service to itself are left out."""
    found: dict[str, set[str]] = {}
    for caller, callee in calls:
        if caller and callee and caller != callee:
            found.setdefault(caller, set()).add(callee)
    return {caller: tuple(sorted(callees)) for caller, callees in sorted(found.items())}


def _asked(window: TimeWindow) -> Mapping[str, str]:
    millisecond = timedelta(milliseconds=1)
    length = (window.end - window.start) // millisecond
    return {"endTs": str(round(window.end.timestamp() * 1_000)), "lookback": str(length)}
