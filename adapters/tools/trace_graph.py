"""Service dependencies as counted by Jaeger and Zipkin from their traces.

https://www.jaegertracing.io/docs/latest/architecture/apis/ and https://zipkin.io/zipkin-api/#/default/get_dependencies
"""

from __future__ import annotations

from collections.abc import Iterable
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


class TraceGraph:
    """DependencyReader over a Jaeger query service or a Zipkin server."""

    def __init__(self, name: str, http: Http, *, is_jaeger: bool) -> None:
        self.name = name
        self._http = http
        self._is_jaeger = is_jaeger

    async def dependencies(self, window: TimeWindow) -> dict[str, tuple[str, ...]]:
        length = (window.end - window.start) // timedelta(milliseconds=1)
        asked = {"endTs": str(round(window.end.timestamp() * 1_000)), "lookback": str(length)}
        if self._is_jaeger:
            calls = (await self._http.parsed("api/dependencies", _JAEGER, asked)).data or []
        else:
            calls = await self._http.parsed("api/v2/dependencies", _ZIPKIN, asked)
        return graph_of((call.parent, call.child) for call in calls[:MAX_CALLS])


def graph_of(calls: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the services that each caller calls, sorted by name. Calls of a service to itself are left out."""
    found: dict[str, set[str]] = {}
    for caller, callee in calls:
        if caller and callee and caller != callee:
            found.setdefault(caller, set()).add(callee)
    return {caller: tuple(sorted(callees)) for caller, callees in sorted(found.items())}
