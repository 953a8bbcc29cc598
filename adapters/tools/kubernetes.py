"""Kubernetes, HTTP API: pods, their logs and events. https://kubernetes.io/docs/reference/kubernetes-api/"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar
from urllib.parse import quote

from pydantic import TypeAdapter

from adapters.http import Http
from adapters.tools.kubernetes_objects import EVENTS_HEAD, Event, List, Pod, described, format_event
from adapters.tools.parts import kept
from core.model.log_levels import level_of
from core.ports import LogLine, Partial, TimeWindow, Tool
from core.rca.observation_tools import ServiceTool

PAGE = 500  # items per response
MAX_PAGES = 10
MAX_PODS = 10  # per service, whose logs are read
MAX_LOG = 4 * 1024 * 1024  # bytes per container log
MAX_LINE = 8_192  # characters per record
MAX_EVENTS = 60  # latest events shown

T = TypeVar("T")


_PODS = TypeAdapter(List[Pod])
_EVENTS = TypeAdapter(List[Event])


@dataclass(frozen=True, slots=True)
class Workload:
    """The namespace and the label selector of a service's pods."""

    namespace: str
    selector: str


class Kubernetes:
    """LogReader over the pods of a cluster, including warnings about them, and a Toolbox for details."""

    def __init__(self, name: str, http: Http, workloads: Mapping[str, Workload]) -> None:
        self.name = name
        self._http = http
        self._workloads = workloads

    async def lines(self, service: str, window: TimeWindow, limit: int) -> list[LogLine]:
        workload = self._workloads.get(service)
        if workload is None:
            return []
        pods = (await self._pods(workload))[:MAX_PODS]
        parts = [
            (f"log of {pod.metadata.name}/{each.name}", self._log(workload, pod, each.name, window, limit))
            for pod in pods
            for each in pod.spec.containers
            if _has_log(pod, each.name)
        ]
        logs = await kept(self.name, parts)
        records = [LogLine(service, at, level_of({}, text), text) for at, text in logs]
        records += [
            LogLine(service, at, "WARN", f"Kubernetes {event.reason}: {event.message}"[:MAX_LINE])
            for at, event in await self._events_of(workload, pods, window)
            if event.type == "Warning"
        ]
        return Partial(sorted(records, key=lambda line: line.at)[-limit:], logs.gaps)

    async def tools(self, services: Sequence[str], window: TimeWindow) -> list[Tool]:
        known = tuple(service for service in services if service in self._workloads)

        async def events(service: str) -> str:
            workload = self._workloads[service]
            found = await self._events_of(workload, await self._pods(workload), window)
            rows = [format_event(at, event) for at, event in found[-MAX_EVENTS:]]
            return "\n".join([EVENTS_HEAD, *rows]) if rows else f"No event about {service}."

        async def describe(service: str) -> str:
            pods = await self._pods(self._workloads[service])
            return "\n\n".join(described(pod) for pod in pods[:MAX_PODS]) or f"No pod of {service}."

        if not known:
            return []
        return [
            ServiceTool("kubernetes_events", "What Kubernetes reported about the pods of a service.", known, events),
            ServiceTool("kubernetes_pods", "The pods of a service: state, restarts, why they ended.", known, describe),
        ]

    async def check(self) -> None:
        """Raise ToolUnavailable if the pods of a service cannot be listed."""
        for workload in self._workloads.values():
            await self._pods(workload)

    async def _pods(self, workload: Workload) -> list[Pod]:
        return await self._all(f"{_namespace(workload)}/pods", _PODS, {"labelSelector": workload.selector})

    async def _events_of(
        self, workload: Workload, pods: Sequence[Pod], window: TimeWindow
    ) -> list[tuple[datetime, Event]]:
        """Return the events about these pods within the window, oldest first."""
        names = {pod.metadata.name for pod in pods}
        events = await self._all(
            f"{_namespace(workload)}/events", _EVENTS, {"fieldSelector": "involvedObject.kind=Pod"}
        )
        found = [
            (event.at, event)
            for event in events
            if event.at and window.start <= event.at < window.end and event.involved in names
        ]
        return sorted(found, key=lambda each: each[0])

    async def _all(self, path: str, kind: TypeAdapter[List[T]], parameters: Mapping[str, str]) -> list[T]:
        items: list[T] = []
        following = ""
        for _ in range(MAX_PAGES):
            position = {"continue": following} if following else {}
            page = await self._http.parsed(path, kind, {**parameters, "limit": str(PAGE), **position})
            items += page.items
            following = page.metadata.continuation
            if not following:
                break
        return items

    async def _log(
        self, workload: Workload, pod: Pod, container: str, window: TimeWindow, limit: int
    ) -> list[tuple[datetime, str]]:
        log = await self._http.text(
            f"{_namespace(workload)}/pods/{quote(pod.metadata.name, safe='')}/log",
            {
                "container": container,
                "timestamps": "true",
                "sinceTime": f"{window.start.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
                "tailLines": str(limit),
                "limitBytes": str(MAX_LOG),
            },
        )
        return [record for record in _records(log) if window.start <= record[0] < window.end]


def _namespace(workload: Workload) -> str:
    return f"api/v1/namespaces/{quote(workload.namespace, safe='')}"


def _has_log(pod: Pod, container: str) -> bool:
    """Return whether a container ever started. Before that, Kubernetes refuses its log."""
    status = next((each for each in pod.status.containerStatuses if each.name == container), None)
    if status is None:
        return pod.status.phase != "Pending"
    return status.state.get("waiting") is None or any(status.lastState.values())


def _records(log: str) -> Iterator[tuple[datetime, str]]:
    """Yield time and text of each record. Indented lines continue the previous record."""
    at: datetime | None = None
    lines: list[str] = []
    for line in log.split("\n"):  # a carriage return, of a progress bar, ends no record
        stamp, _, text = line.partition(" ")
        try:
            time = datetime.fromisoformat(stamp)
        except ValueError:
            continue
        if at and text[:1].isspace():
            lines.append(text)
            continue
        if at:
            yield at, "\n".join(lines)[:MAX_LINE]
        at, lines = time if time.tzinfo else None, [text]
    if at:
        yield at, "\n".join(lines)[:MAX_LINE]
