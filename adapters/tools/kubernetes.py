"""Kubernetes, HTTP API: pods, their logs and events, and the objects around them. https://kubernetes.io/docs/reference/kubernetes-api/"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import quote

from pydantic import Field, TypeAdapter

from adapters.http import Http, gaps_in, in_utc, typed
from adapters.section import EnvironmentName, Host, Section, Url
from adapters.tools.kubernetes_objects import (
    EVENTS_HEAD,
    Family,
    KubernetesEvent,
    List,
    Pod,
    Relative,
    described,
    format_event,
    manifest,
)
from adapters.tools.section import Part, Tools, ToolSection, chosen, kept, open_http, with_gaps
from core.model.errors import ConfigurationError, ToolUnavailable
from core.model.findings import Gap, GapReason
from core.model.log_levels import level_of
from core.ports import LogLine, Partial, TimeWindow, Tool, gap_of
from core.rca.observation_tools import ServiceTool
from core.rca.observations import UNREAD

PAGE = 500  # items per response
MAX_PAGES = 10
MAX_PODS = 10  # per service, whose logs are read
MAX_LOG = 4 * 1024 * 1024  # bytes per container log
MAX_LINE = 8_192  # characters per record
MAX_EVENTS = 60  # latest events shown

T = TypeVar("T")


_PODS = TypeAdapter(List[Pod])
_EVENTS = TypeAdapter(List[KubernetesEvent])
_RELATIVES = TypeAdapter(List[Relative])
_OBJECTS = TypeAdapter(List[dict[str, Any]])
_STATE = (
    ("Deployment", "apis/apps/v1/{namespace}/deployments", True),
    ("StatefulSet", "apis/apps/v1/{namespace}/statefulsets", True),
    ("Pod", "api/v1/{namespace}/pods", True),
    ("Service", "api/v1/{namespace}/services", False),
    ("Endpoints", "api/v1/{namespace}/endpoints", False),
    ("ResourceQuota", "api/v1/{namespace}/resourcequotas", False),
    ("PersistentVolumeClaim", "api/v1/{namespace}/persistentvolumeclaims", False),
    ("PersistentVolume", "api/v1/persistentvolumes", False),
    ("StorageClass", "apis/storage.k8s.io/v1/storageclasses", False),
    ("Node", "api/v1/nodes", False),
)
"""The kinds of objects that explain why a service does not serve, where they are, and whether only the service's are read."""


_RULES_AT = {
    "HorizontalPodAutoscaler": "apis/autoscaling/v2/{namespace}/horizontalpodautoscalers",
    "ScaledObject": "apis/keda.sh/v1alpha1/{namespace}/scaledobjects",
    "PodDisruptionBudget": "apis/policy/v1/{namespace}/poddisruptionbudgets",
}
"""Where the objects are that say by themselves which workload they are about."""

_OWN = frozenset("Pod ReplicaSet StatefulSet DaemonSet Deployment Job CronJob".split())
"""The kinds of objects that a service consists of, which its records need not name."""


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
        pods = await kept(self.name, [("pods", self._pods(workload))])
        read = chosen(pods, MAX_PODS, f"{self.name}: logs of pods", _name)
        logs = [
            (
                f"{'previous ' if previous else ''}log of {pod.metadata.name}/{container}",
                self._log(service, pod, container, window, limit, previous=previous),
            )
            for pod in read
            for container, previous in pod.logs(window.start)
        ]
        records = await kept(self.name, [*logs, ("events", self._warnings(service, pods, window))])
        return Partial(sorted(records, key=lambda line: line.at)[-limit:], (*read.gaps, *records.gaps))

    async def _warnings(self, service: str, pods: Sequence[Pod], window: TimeWindow) -> list[LogLine]:
        events = await self._events_of(service, pods, window)
        lines = [
            LogLine(service, at, "WARN", f"Kubernetes {_title(event)}: {event.message}"[:MAX_LINE])
            for at, event in events
            if event.type == "Warning"
        ]
        return Partial(lines, events.gaps)

    async def tools(self, services: Sequence[str], window: TimeWindow) -> list[Tool]:
        mapped_services = tuple(service for service in services if service in self._workloads)

        async def events(service: str) -> str:
            events = await self._events_of(service, await self._pods(self._workloads[service]), window)
            latest = sorted(events, key=lambda dated: (dated[1].type == "Warning", dated[0]), reverse=True)
            shown = chosen(latest, MAX_EVENTS, f"{self.name}: events", lambda dated: _title(dated[1]))
            rows = [format_event(at, event) for at, event in sorted(shown, key=lambda dated: dated[0])]
            text = "\n".join([EVENTS_HEAD, *rows]) if rows else f"No event about {service}."
            return with_gaps(text, (*events.gaps, *shown.gaps))

        async def describe(service: str) -> str:
            pods = chosen(await self._pods(self._workloads[service]), MAX_PODS, f"{self.name}: pods", _name)
            unwell = {pod.spec.nodeName for pod in pods if pod.relevance[0] == 0 and pod.spec.nodeName}
            parts = [
                (f"node {name}", self._all("api/v1/nodes", _RELATIVES, {"fieldSelector": f"metadata.name={name}"}))
                for name in unwell
            ]
            nodes = await self._if_readable(parts)
            text = "\n\n".join(described(pod, nodes) for pod in pods) or f"No pod of {service}."
            return with_gaps(text, (*pods.gaps, *nodes.gaps))

        shared: dict[tuple[str, str], asyncio.Task[Partial[str]]] = {}  # what several services have in common

        async def objects(workload: Workload, kind: str, path: str, *, own: bool) -> Partial[str]:
            key = (_within(workload, path), workload.selector if own else "")
            if key not in shared:
                shared[key] = asyncio.create_task(self._objects(kind, *key))
            return await asyncio.shield(shared[key])

        async def state(service: str) -> str:
            workload = self._workloads[service]
            parts = [(kind, objects(workload, kind, path, own=own)) for kind, path, own in _STATE]
            partial = await kept(self.name, parts)
            return "\n---\n".join([*partial, *(f"# {UNREAD}{gap.text}" for gap in partial.gaps)])

        if not mapped_services:
            return []
        return [
            ServiceTool(
                "kubernetes_events",
                "What Kubernetes reported about a service: its pods, their nodes and claims, what scales it.",
                mapped_services,
                events,
            ),
            ServiceTool(
                "kubernetes_pods", "The pods of a service: state, restarts, why they ended.", mapped_services, describe
            ),
            ServiceTool(
                "kubernetes_objects",
                "The workload of a service, and the services, quotas, volumes and nodes around it, as manifests.",
                mapped_services,
                state,
            ),
        ]

    async def check(self) -> None:
        """Raise ToolUnavailable if the pods of a service cannot be listed."""
        for workload in self._workloads.values():
            await self._pods(workload)

    async def _pods(self, workload: Workload) -> Partial[Pod]:
        """Return the pods, the most relevant ones first."""
        pods = await self._all(f"{_namespace(workload)}/pods", _PODS, {"labelSelector": workload.selector})
        return Partial(sorted(pods, key=lambda pod: pod.relevance), pods.gaps)

    async def _events_of(
        self, service: str, pods: Sequence[Pod], window: TimeWindow
    ) -> Partial[tuple[datetime, KubernetesEvent]]:
        """Return the events about these pods, what they run on and are scaled by, and earlier ones, oldest first."""
        workload = self._workloads[service]
        parts = [("events", self._all(f"{_namespace(workload)}/events", _EVENTS, {}))]
        if workload.namespace != "default" and any(pod.spec.nodeName for pod in pods):
            of_nodes = self._all(
                "api/v1/namespaces/default/events", _EVENTS, {"fieldSelector": "involvedObject.kind=Node"}
            )
            parts.append(("events of nodes", of_nodes))
        events = await kept(self.name, parts)
        sets = Partial[Relative]() if pods else await self._sets(workload)
        family = Family.of(service, pods, sets)
        kinds = _RULES_AT.keys() & {event.involved.kind for event in events if not family.has(event)}
        rules = await self._if_readable(
            [(kind, self._all(_within(workload, _RULES_AT[kind]), _RELATIVES, {})) for kind in sorted(kinds)]
        )
        family = family.with_rules(rules)
        dated = [
            (event.at, event)
            for event in events
            if event.at and window.start <= event.at < window.end and family.has(event)
        ]
        return Partial(sorted(dated, key=lambda each: each[0]), (*events.gaps, *sets.gaps, *rules.gaps))

    async def _sets(self, workload: Workload) -> Partial[Relative]:
        """Return what would own the pods of a service that has none, for example because they cannot be created."""
        names = dict.fromkeys(("ReplicaSets", "StatefulSets", "DaemonSets"), "apps/v1") | {"Jobs": "batch/v1"}
        query = {"labelSelector": workload.selector}
        return await self._if_readable(
            [
                (name, self._all(_within(workload, f"apis/{version}/{{namespace}}/{name.lower()}"), _RELATIVES, query))
                for name, version in names.items()
            ]
        )

    async def _if_readable(self, parts: Sequence[Part[T]]) -> Partial[T]:
        """Return what can be read, even if nothing can."""
        try:
            return await kept(self.name, parts)
        except ToolUnavailable as error:
            return Partial(gaps=[gap_of(f"{self.name}: {', '.join(name for name, _ in parts)}", error)])

    async def _all(self, path: str, kind: TypeAdapter[List[T]], parameters: Mapping[str, str]) -> Partial[T]:
        """Return the items of all pages, up to one that cannot be read."""
        items: Partial[T] = Partial()
        following = ""
        for _ in range(MAX_PAGES):
            position = {"continue": following} if following else {}
            try:
                page = await self._http.parsed(path, kind, {**parameters, "limit": str(PAGE), **position})
            except ToolUnavailable as error:
                if not following:
                    raise
                return Partial(items, (*items.gaps, gap_of("", error)))
            items += page.items
            items.gaps += gaps_in(page.items)
            following = page.metadata.continuation
            if not following:
                return items
        return Partial(items, (*items.gaps, Gap("", GapReason.LEFT_OUT, f"all after the first {len(items)}")))

    async def _objects(self, kind: str, path: str, selector: str) -> Partial[str]:
        objects = await self._all(path, _OBJECTS, {"labelSelector": selector} if selector else {})
        return Partial([manifest(kind, each) for each in objects], objects.gaps)

    async def _log(
        self, service: str, pod: Pod, container: str, window: TimeWindow, limit: int, *, previous: bool
    ) -> list[LogLine]:
        log = await self._http.text(
            f"{_namespace(self._workloads[service])}/pods/{quote(pod.metadata.name, safe='')}/log",
            {
                "container": container,
                "timestamps": "true",
                "sinceTime": f"{window.start.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
                "tailLines": str(limit),
                "limitBytes": str(MAX_LOG),
            }
            | ({"previous": "true"} if previous else {}),
        )
        records = _records(log)
        inside = ((at, text) for at, text in records if window.start <= at < window.end)
        return Partial((LogLine(service, at, level_of({}, text), text) for at, text in inside), records.gaps)


def _namespace(workload: Workload) -> str:
    return f"api/v1/namespaces/{quote(workload.namespace, safe='')}"


def _within(workload: Workload, path: str) -> str:
    return path.format(namespace=_namespace(workload).removeprefix("api/v1/"))


def _name(pod: Pod) -> str:
    return f"{pod.metadata.name} ({pod.status.reason or pod.status.phase})"


def _title(event: KubernetesEvent) -> str:
    about = event.involved
    return event.reason if about.kind in _OWN else f"{event.reason} of {about.kind} {about.name}"


def _records(log: str) -> Partial[tuple[datetime, str]]:
    """Return time and text of each record, with a gap for lines without a time, which a node writes itself.

    Indented lines continue the previous record. A carriage return, of a progress bar, ends no record.
    """
    lines = typed(filter(str.strip, log.split("\n")), _stamped)
    records = list[tuple[datetime, list[str]]]()
    for at, text in lines:
        if records and text[:1].isspace():
            records[-1][1].append(text)
        else:
            records.append((at, [text]))
    return Partial(((at, "\n".join(texts)[:MAX_LINE]) for at, texts in records), lines.gaps)


def _stamped(line: str) -> tuple[datetime, str]:
    stamp, _, text = line.rstrip("\r").partition(" ")
    try:
        return in_utc(datetime.fromisoformat(stamp)), text
    except ValueError:
        raise ValueError(line) from None


class WorkloadSection(Section):
    namespace: str
    selector: str


class KubernetesTool(ToolSection):
    """A Kubernetes cluster.

    `ca_file` contains the certificate of its authority; the default is the system's authorities.
    """

    kind: Literal["kubernetes"]
    name: str = "Kubernetes"
    url: Url
    services: Annotated[dict[str, WorkloadSection], Field(min_length=1)]
    token_env: EnvironmentName
    ca_file: Path | None = None

    def open(self, host: Host) -> Tools:
        tls: ssl.SSLContext | bool = True
        if self.ca_file is not None:
            try:
                tls = ssl.create_default_context(cafile=str(self.ca_file))
            except OSError as error:  # ssl.SSLError is a subclass
                raise ConfigurationError(f"{self.name}: {self.ca_file} is not a certificate: {error}.") from None
        workloads = {service: Workload(each.namespace, each.selector) for service, each in self.services.items()}
        cluster = Kubernetes(self.name, open_http(self.name, self.url, self.token_env, host, tls=tls), workloads)
        return Tools(logs=(cluster,), toolboxes=(cluster,))
