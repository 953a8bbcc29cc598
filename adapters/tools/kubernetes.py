"""Kubernetes, HTTP API: pods, their logs and events, and the objects around them. https://kubernetes.io/docs/reference/kubernetes-api/"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, Self, TypeVar
from urllib.parse import quote

import yaml
from pydantic import AliasPath, BaseModel, Field, TypeAdapter, model_validator

from adapters.http import Http, Items, Moment, gaps_in, in_utc, typed
from adapters.section import EnvironmentName, Host, Section, Url
from adapters.tools.section import MAX_LINE, Part, Tools, ToolSection, chosen, kept, open_http, with_gaps
from core.model.errors import ConfigurationError, ToolUnavailable
from core.model.findings import Gap, GapReason
from core.model.log_levels import level_of
from core.ports import LogLine, Partial, TimeWindow, Tool, gap_of
from core.rca.observation_tools import ServiceTool
from core.rca.observations import UNREAD

EVENTS_HEAD = "LAST SEEN                TYPE     REASON              OBJECT  MESSAGE"

_GENERATED = re.compile(r"-(?:[bcdfghjklmnpqrstvwxz2-9]{5,10}|\d{8,10})\Z")
"""The end of a set's name: a hash without vowels of a Deployment's pods, or the minute of a CronJob's run."""

T = TypeVar("T")


class ObjectReference(BaseModel):
    """The kind and the name of an object in another one."""

    kind: str = ""
    name: str = ""


class Metadata(BaseModel):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None
    finalizers: list[str] | None = None
    created: Moment | None = Field(default=None, validation_alias="creationTimestamp")
    removed: Moment | None = Field(default=None, validation_alias="deletionTimestamp")
    ownerReferences: Items[ObjectReference] = []
    continuation: str = Field(default="", validation_alias="continue")


class ContainerState(BaseModel):
    reason: str = ""
    message: str = ""
    exitCode: int | None = None
    finishedAt: Moment | None = None


class ContainerStatus(BaseModel):
    name: str
    image: str = ""
    ready: bool = False
    restartCount: int = 0
    state: dict[str, ContainerState | None] = {}
    lastState: dict[str, ContainerState | None] = {}


class StatusCondition(BaseModel):
    type: str
    status: str
    reason: str = ""
    message: str = ""


class PodStatus(BaseModel):
    phase: str = "Unknown"
    reason: str = ""
    message: str = ""
    conditions: Items[StatusCondition] = []
    containerStatuses: Items[ContainerStatus] = []
    initContainerStatuses: Items[ContainerStatus] = []
    ephemeralContainerStatuses: Items[ContainerStatus] = []


class ContainerSpec(BaseModel):
    name: str
    command: list[str] = []
    args: list[str] = []
    limits: dict[str, str] = Field({}, validation_alias=AliasPath("resources", "limits"))
    requests: dict[str, str] = Field({}, validation_alias=AliasPath("resources", "requests"))


class Volume(BaseModel):
    claim: str = Field("", validation_alias=AliasPath("persistentVolumeClaim", "claimName"))


class PodSpec(BaseModel):
    nodeName: str = ""
    volumes: Items[Volume] = []
    containers: Items[ContainerSpec] = []
    initContainers: Items[ContainerSpec] = []
    ephemeralContainers: Items[ContainerSpec] = []


class Relative(BaseModel):
    """An object around pods: their owner, their node, or a rule for what it names as its target or selects by labels."""

    metadata: Metadata
    target: str = Field("", validation_alias=AliasPath("spec", "scaleTargetRef", "name"))
    labels: dict[str, str] = Field({}, validation_alias=AliasPath("spec", "selector", "matchLabels"))
    conditions: Items[StatusCondition] = Field([], validation_alias=AliasPath("status", "conditions"))


class Pod(BaseModel):
    metadata: Metadata
    spec: PodSpec = PodSpec()
    status: PodStatus

    @property
    def relevance(self) -> tuple[int, float]:
        """Return the place of a pod: first one that is not ready, then ready, failed, and completed or evicted ones.

        Among equal ones, the latest comes first.
        """
        status = self.status
        ended = (state.finishedAt for each in status.containerStatuses for state in each.state.values() if state)
        last = max(filter(None, (self.metadata.created, *ended)), default=None)
        is_waiting = self.metadata.removed is not None or status.phase == "Pending"
        is_ready = not is_waiting and all(each.ready for each in status.containerStatuses)
        rank = {"Failed": 3 if status.reason else 2, "Succeeded": 3}.get(status.phase, int(is_ready))
        return rank, -last.timestamp() if last else 0.0

    def logs(self, since: datetime) -> Iterator[tuple[str, bool]]:
        """Yield the containers with a log, and whether it is that of the previous instance, if it ended after `since`.

        Before a container starts, Kubernetes refuses its log. Before it starts again, its log is the previous one.
        """
        spec, status = self.spec, self.status
        all_statuses = (*status.initContainerStatuses, *status.containerStatuses, *status.ephemeralContainerStatuses)
        statuses = {each.name: each for each in all_statuses}
        for container in (*spec.initContainers, *spec.containers, *spec.ephemeralContainers):
            own = statuses.get(container.name)
            if own.state.get("waiting") is None if own else status.phase != "Pending":
                yield container.name, False
            ended = next(filter(None, own.lastState.values()), None) if own else None
            if ended and (ended.finishedAt is None or ended.finishedAt >= since):
                yield container.name, True


class KubernetesEvent(BaseModel):
    type: str = "Normal"
    reason: str = ""
    message: str = ""
    count: int | None = None
    involved: ObjectReference = Field(ObjectReference(), validation_alias="involvedObject")
    lastTimestamp: Moment | None = None
    eventTime: Moment | None = None
    last: Moment | None = Field(None, validation_alias=AliasPath("series", "lastObservedTime"))
    repeated: int | None = Field(None, validation_alias=AliasPath("series", "count"))

    @property
    def at(self) -> datetime | None:
        """Return the time of the last occurrence."""
        return self.last or self.lastTimestamp or self.eventTime

    @model_validator(mode="after")
    def _has_time(self) -> Self:
        if self.at is None:
            raise ValueError("an event has no time")
        return self


class List(BaseModel, Generic[T]):
    metadata: Metadata = Metadata()
    items: Items[T]


@dataclass(frozen=True, slots=True)
class Family:
    """The names of what a service consists of, runs on and is scaled by.

    `sets` own its pods, and `tops`, the Deployments, Rollouts and CronJobs, own these. `names` are those of other
    objects.
    """

    pods: Sequence[Pod]
    sets: frozenset[str]
    tops: frozenset[str]
    names: frozenset[str]

    @classmethod
    def of(cls, service: str, pods: Sequence[Pod], sets: Sequence[Relative]) -> Family:
        owners = {owner.name for pod in pods for owner in pod.metadata.ownerReferences}
        owners |= {each.metadata.name for each in sets}
        tops = {owner.name for each in sets for owner in each.metadata.ownerReferences}
        return cls(
            pods, frozenset(owners), frozenset(filter(None, tops.union(map(_top, owners)))), frozenset({service})
        )

    def has(self, event: KubernetesEvent) -> bool:
        """Return whether an event is about one of these, or about a set or a pod that they had before."""
        name = event.involved.name
        match event.involved.kind:
            case "Pod" | "AnalysisRun":
                return any(name == pod.metadata.name for pod in self.pods) or self._has_set(name.rpartition("-")[0])
            case "Node":
                return any(name == pod.spec.nodeName for pod in self.pods)
            case "PersistentVolumeClaim":
                claims = {volume.claim for pod in self.pods for volume in pod.spec.volumes}
                of_set = (name.rpartition("-")[0].endswith(f"-{each}") for each in self.sets | self.tops | self.names)
                return name in claims or any(of_set)
            case _:
                return name in self.tops | self.names or self._has_set(name)

    def with_rules(self, rules: Sequence[Relative]) -> Family:
        """Return the family with the names of those among these objects that are about it."""
        labels = [(pod.metadata.labels or {}).items() for pod in self.pods]
        own = (
            rule.metadata.name
            for rule in rules
            if rule.target in self.sets | self.tops | self.names
            or (rule.labels and any(rule.labels.items() <= each for each in labels))
        )
        return replace(self, names=self.names.union(own))

    def _has_set(self, name: str) -> bool:
        return name in self.sets or _top(name) in self.tops


def _top(name: str) -> str:
    """Return the name of the Deployment or CronJob that generated the name of a set; empty if none did."""
    generated = _GENERATED.search(name)
    return name[: generated.start()] if generated else ""


def format_event(at: datetime, event: KubernetesEvent) -> str:
    """Return a row like `kubectl get events`, with the time instead of the age."""
    named = f"{event.involved.kind.lower()}/{event.involved.name}"
    count = event.repeated or event.count or 1
    times = f" (x{count})" if count > 1 else ""
    message = f"{' '.join(event.message.split())}{times}"
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC  {event.type:<7}  {event.reason:<18}  {named}  {message}"


def described(pod: Pod, nodes: Sequence[Relative] = ()) -> str:
    """Return a pod like `kubectl describe`, limited to the fields that explain why it does not serve."""
    specified = {each.name: each for each in (*pod.spec.initContainers, *pod.spec.containers)}
    metadata, removed = pod.metadata, pod.metadata.removed
    ready = (each for node in nodes if node.metadata.name == pod.spec.nodeName for each in node.conditions)
    lost = [
        f" (NotReady: {each.reason} {each.message})" for each in ready if each.type == "Ready" and each.status != "True"
    ]
    since = f"Terminating since {removed.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC, " if removed else ""
    fields = {
        "Name": metadata.name,
        "Namespace": metadata.namespace,
        "Node": "".join([pod.spec.nodeName, *lost]),
        "Status": f"{since}{pod.status.phase}",
        "Finalizers": ", ".join(metadata.finalizers or ()) if removed else "",
        "Reason": pod.status.reason,
        "Message": pod.status.message,
    }
    lines = [f"{name}:  {text}" for name, text in fields.items() if text or name == "Namespace"]
    for title, statuses in (
        ("Init Containers", pod.status.initContainerStatuses),
        ("Containers", pod.status.containerStatuses),
        ("Ephemeral Containers", pod.status.ephemeralContainerStatuses),
    ):
        lines += [f"{title}:"] if statuses else []
        lines += [line for each in statuses for line in _container(each, specified.get(each.name))]
    unmet = [each for each in pod.status.conditions if each.status != "True"]
    lines += ["Conditions:", "  Type  Status  Reason  Message"] if unmet else []
    lines += [
        f"  {each.type}  {each.status}  {each.reason}  {' '.join(each.message.split())}".rstrip() for each in unmet
    ]
    return "\n".join(lines)


def _container(status: ContainerStatus, specified: ContainerSpec | None) -> list[str]:
    lines = [f"  {status.name}:", f"    Image:  {status.image}"]
    for name, values in (("Command", specified.command), ("Args", specified.args)) if specified else ():
        lines += [f"    {name}:", *(f"      {' '.join(value.split())}" for value in values)] if values else []
    for title, states in (("State", status.state), ("Last State", status.lastState)):
        for name, state in states.items():
            if state is not None:
                lines += [f"    {title}:  {name.capitalize()}", *_state(state)]
    lines += [f"    Ready:  {status.ready}", f"    Restart Count:  {status.restartCount}"]
    for name, amounts in (("Limits", specified.limits), ("Requests", specified.requests)) if specified else ():
        lines += [f"    {name}:", *(f"      {what}:  {amount}" for what, amount in amounts.items())] if amounts else []
    return lines


def _state(state: ContainerState) -> list[str]:
    fields = (
        ("Reason", state.reason),
        ("Message", " ".join(state.message.split())),
        ("Exit Code", "" if state.exitCode is None else str(state.exitCode)),
        ("Finished", f"{state.finishedAt.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if state.finishedAt else ""),
    )
    return [f"      {name}:  {text}" for name, text in fields if text]


_LEFT_OUT = ("managedFields", "annotations", "images", "volumesInUse", "volumesAttached", "nodeInfo")
_ADDRESS = re.compile(r"[a-z][a-z0-9.-]{0,252}:\d{2,5}")


def manifest(kind: str, given: Mapping[str, Any]) -> str:
    """Return an object of the API as YAML, without what explains no failure.

    Of environments only plain addresses (`cart:7070`) are kept, since other values may be secrets.
    """
    return yaml.safe_dump({"kind": kind} | _slim(given), sort_keys=False, allow_unicode=True)


def _slim(given: Any, key: str = "") -> Any:
    if isinstance(given, dict):
        return {name: _slim(value, name) for name, value in given.items() if name not in _LEFT_OUT}
    if isinstance(given, list) and key == "env":
        return [each for each in given if isinstance(each, dict) and _ADDRESS.fullmatch(str(each.get("value", "")))]
    return [_slim(each) for each in given] if isinstance(given, list) else given


PAGE = 500  # items per response
MAX_PAGES = 10
MAX_PODS = 10  # per service, whose logs are read
MAX_LOG = 4 * 1024 * 1024  # bytes per container log
MAX_EVENTS = 60  # latest events shown


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


class Workload(Section):
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


class KubernetesTool(ToolSection):
    """A Kubernetes cluster.

    `ca_file` contains the certificate of its authority; the default is the system's authorities.
    """

    kind: Literal["kubernetes"]
    name: str = "Kubernetes"
    url: Url
    services: Annotated[dict[str, Workload], Field(min_length=1)]
    token_env: EnvironmentName
    ca_file: Path | None = None

    def open(self, host: Host) -> Tools:
        tls: ssl.SSLContext | bool = True
        if self.ca_file is not None:
            try:
                tls = ssl.create_default_context(cafile=str(self.ca_file))
            except OSError as error:  # ssl.SSLError is a subclass
                raise ConfigurationError(f"{self.name}: {self.ca_file} is not a certificate: {error}.") from None
        cluster = Kubernetes(self.name, open_http(self.name, self.url, self.token_env, host, tls=tls), self.services)
        return Tools(logs=(cluster,), toolboxes=(cluster,))
