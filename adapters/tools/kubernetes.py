"""Kubernetes, over its HTTP API: pods, their logs and events. https://kubernetes.io/docs/reference/kubernetes-api/"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar
from urllib.parse import quote

from pydantic import AwareDatetime, BaseModel, Field, TypeAdapter

from adapters.tools.http import Http
from adapters.tools.loki import level_of
from core.ports import LogLine, TimeWindow, Tool
from core.rca.service_tool import ServiceTool

PAGE = 500  # items of one answer
MAX_PAGES = 10
MAX_PODS = 10  # of one service whose logs are read
MAX_LOG = 4 * 1024 * 1024  # bytes read of one container's log
MAX_LINE = 8_192  # characters kept of one record
MAX_EVENTS = 60  # shown, the latest ones

T = TypeVar("T")


class _Metadata(BaseModel):
    name: str = ""
    continuation: str = Field("", alias="continue")


class _State(BaseModel):
    reason: str = ""
    message: str = ""
    exitCode: int | None = None
    finishedAt: AwareDatetime | None = None


class _ContainerStatus(BaseModel):
    name: str
    image: str = ""
    ready: bool = False
    restartCount: int = 0
    state: dict[str, _State | None] = {}
    lastState: dict[str, _State | None] = {}


class _Condition(BaseModel):
    type: str
    status: str
    reason: str = ""
    message: str = ""


class _PodStatus(BaseModel):
    phase: str = "Unknown"
    conditions: list[_Condition] = []
    containerStatuses: list[_ContainerStatus] = []


class _Container(BaseModel):
    name: str


class _PodSpec(BaseModel):
    nodeName: str = ""
    containers: list[_Container] = []


class _Pod(BaseModel):
    metadata: _Metadata
    spec: _PodSpec
    status: _PodStatus


class _Involved(BaseModel):
    kind: str = ""
    name: str = ""


class _Event(BaseModel):
    type: str = "Normal"
    reason: str = ""
    message: str = ""
    count: int | None = None
    involvedObject: _Involved = _Involved()
    lastTimestamp: AwareDatetime | None = None
    eventTime: AwareDatetime | None = None

    @property
    def at(self) -> datetime | None:
        return self.lastTimestamp or self.eventTime


class _List(BaseModel, Generic[T]):
    metadata: _Metadata
    items: list[T]


_PODS = TypeAdapter(_List[_Pod])
_EVENTS = TypeAdapter(_List[_Event])


@dataclass(frozen=True, slots=True)
class Workload:
    """Where a service runs: its namespace and the label selector of its pods."""

    namespace: str
    selector: str


class Kubernetes:
    """LogReader over the pods of one cluster, with warnings about them as records, and the Toolbox to look closer."""

    def __init__(self, name: str, http: Http, workloads: Mapping[str, Workload]) -> None:
        self._name = name
        self._http = http
        self._workloads = workloads

    @property
    def name(self) -> str:
        return self._name

    async def lines(self, service: str, window: TimeWindow, limit: int) -> list[LogLine]:
        workload = self._workloads.get(service)
        if workload is None:
            return []
        pods = (await self._pods(workload))[:MAX_PODS]
        logs = await asyncio.gather(
            *(
                self._log(workload, pod, each.name, window, limit)
                for pod in pods
                for each in pod.spec.containers
                if _has_log(pod, each.name)
            )
        )
        records = [LogLine(service, at, level_of({}, text), text) for log in logs for at, text in log]
        records += [
            LogLine(service, at, "WARN", f"Kubernetes {event.reason}: {event.message}"[:MAX_LINE])
            for at, event in await self._events_of(workload, pods, window)
            if event.type == "Warning"
        ]
        return sorted(records, key=lambda line: line.at)[-limit:]

    async def tools(self, services: Sequence[str], window: TimeWindow) -> list[Tool]:
        known = tuple(service for service in services if service in self._workloads)

        async def events(service: str) -> str:
            workload = self._workloads[service]
            found = await self._events_of(workload, await self._pods(workload), window)
            return "\n".join(_told(at, event) for at, event in found[-MAX_EVENTS:]) or f"No event about {service}."

        async def describe(service: str) -> str:
            pods = await self._pods(self._workloads[service])
            return "\n".join(_described(pod) for pod in pods[:MAX_PODS]) or f"No pod of {service}."

        if not known:
            return []
        return [
            ServiceTool("kubernetes_events", "What Kubernetes reported about the pods of a service.", known, events),
            ServiceTool("kubernetes_pods", "The pods of a service: state, restarts, why they ended.", known, describe),
        ]

    async def check(self) -> None:
        """Raises ToolUnavailable when the pods of a service cannot be listed."""
        for workload in self._workloads.values():
            await self._pods(workload)

    async def _pods(self, workload: Workload) -> list[_Pod]:
        return await self._all(f"{_namespace(workload)}/pods", _PODS, {"labelSelector": workload.selector})

    async def _events_of(
        self, workload: Workload, pods: Sequence[_Pod], window: TimeWindow
    ) -> list[tuple[datetime, _Event]]:
        """The events about these pods within the window, oldest first."""
        names = {pod.metadata.name for pod in pods}
        events = await self._all(
            f"{_namespace(workload)}/events", _EVENTS, {"fieldSelector": "involvedObject.kind=Pod"}
        )
        found = [
            (event.at, event)
            for event in events
            if event.at and window.start <= event.at < window.end and event.involvedObject.name in names
        ]
        return sorted(found, key=lambda each: each[0])

    async def _all(self, path: str, kind: TypeAdapter[_List[T]], parameters: Mapping[str, str]) -> list[T]:
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
        self, workload: Workload, pod: _Pod, container: str, window: TimeWindow, limit: int
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


def _has_log(pod: _Pod, container: str) -> bool:
    """Whether it ever started: of one that waits for its image or its turn, Kubernetes refuses to give the log."""
    status = next((each for each in pod.status.containerStatuses if each.name == container), None)
    if status is None:
        return pod.status.phase != "Pending"
    return status.state.get("waiting") is None or any(status.lastState.values())


def _records(log: str) -> Iterator[tuple[datetime, str]]:
    """Time and text of each record; indented lines continue the one before."""
    at: datetime | None = None
    lines: list[str] = []
    for line in log.splitlines():
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


def _told(at: datetime, event: _Event) -> str:
    times = f", {event.count} times" if event.count and event.count > 1 else ""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC {event.type} {event.reason}{times}: {event.message}"


def _described(pod: _Pod) -> str:
    failing = [
        f"{each.type} is {each.status} ({each.reason or each.message})"
        for each in pod.status.conditions
        if each.status != "True"
    ]
    containers = [_container(each) for each in pod.status.containerStatuses]
    node = f" on {pod.spec.nodeName}" if pod.spec.nodeName else ""
    return "; ".join([f"{pod.metadata.name}{node}: {pod.status.phase}", *containers, *failing])


def _container(status: _ContainerStatus) -> str:
    now = [f"{name} {state.reason}".strip() for name, state in status.state.items() if state]
    last = [
        f"last ended with {state.reason or 'no reason'} (exit code {state.exitCode})"
        for state in status.lastState.values()
        if state
    ]
    ready = "ready" if status.ready else "not ready"
    return ", ".join([f"{status.name} ({status.image}) {ready}, {status.restartCount} restarts", *now, *last])
