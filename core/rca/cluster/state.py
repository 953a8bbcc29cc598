"""The objects of a cluster, as far as they were read, each merged from all outputs that show it.

What is not known is None: it is neither 0 nor no. A later reading replaces an earlier one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import TypeVar

RECENT = timedelta(hours=1)  # before now, within which an end of a container or a warning belongs to the present
FRESH = timedelta(minutes=5)  # before now, within which a warning of a pod that restarts is not over although it runs
_GENERATED = re.compile(r"(?:-[a-f0-9]{6,10}|-[bcdfghjklmnpqrstvwxz2456789]{8,10})?-[bcdfghjklmnpqrstvwxz2456789]{5}$")
"""Matches the suffixes that Kubernetes generates: no vowels, and no digits that look like them."""
_HASH = re.compile(r"-(?:[a-f0-9]{6,10}|[bcdfghjklmnpqrstvwxz2456789]{8,10})$")
_UNITS = {"": 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15} | {
    f"{unit}i": 1024.0**power for power, unit in enumerate("KMGTP", 1)
}
_QUANTITY = re.compile(r"^(\d{1,20}(?:\.\d{1,9})?)(m|k|[MGTP]|[KMGTP]i)?$")
S = TypeVar("S", "Container", "Resource")
STARTING = ("", "ContainerCreating", "PodInitializing")  # reasons of a container that has just begun
DONE = ("Succeeded", "Completed")


def stem(name: str) -> str:
    """Return a name without its generated suffix: “api” for “api-7d4b9c6f5d-x2x4z”."""
    return _GENERATED.sub("", name)


def app_of(pod: str) -> str:
    """Return the name of the workload of a pod: “api” for “api-7d4b9c6f5d-x2x4z”, “db” for “db-0”."""
    name, _, number = pod.rpartition("-")
    return name if name and number.isdecimal() and stem(pod) == pod else stem(pod)


def quantity(text: str) -> float | None:
    """Return an amount as Kubernetes writes it (“500m”, “1Gi”) as a number; None if it is none."""
    match = _QUANTITY.match(text.strip())
    return float(match[1]) * _UNITS[match[2] or ""] if match else None


def is_short(used: str, demand: str, hard: str) -> bool:
    """Return whether less is left of an amount than is asked for."""
    has, wants, may = quantity(used), quantity(demand), quantity(hard)
    return has is not None and wants is not None and may is not None and has + wants > may


def is_of_node(kind: str) -> bool:
    return kind in ("node", "instance", "host")


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a container, or of a service with its target: a number or a name."""

    number: str
    protocol: str = "TCP"
    name: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe of a container. `handler` is `grpc`, `http-get`, `tcp-socket` or `exec`; times are in seconds."""

    handler: str
    port: str
    delay: int = 0
    timeout: int = 1
    period: int = 10
    failures: int = 3


@dataclass(frozen=True, slots=True)
class Container:
    """A container: its specification, and its state where it was read.

    `waits` is the reason why it waits, `ended` the one why it is over, `last` why its previous instance ended, with
    `code` and `at`. `message` is what the state says beside its reason.
    """

    name: str
    ports: tuple[Port, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    probes: Mapping[str, Probe] = field(default_factory=dict[str, Probe])
    limits: Mapping[str, str] = field(default_factory=dict[str, str])
    is_init: bool | None = None
    ready: bool | None = None
    waits: str | None = None
    ended: str | None = None
    message: str | None = None
    last: str | None = None
    code: int | None = None
    at: datetime | None = None
    restarts: int | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that the controller of an object reports. `status` is True, False or Unknown."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    at: datetime | None = None


def state_by(conditions: Iterable[Condition]) -> str:
    """Return the state that conditions amount to; empty if none of them tells it."""
    held = {each.type: each.status == "True" for each in conditions}
    ended = next((name for name in ("Failed", "Complete") if held.get(name)), "")
    return ended or {True: "Ready", False: "NotReady", None: ""}[held.get("Ready")]


@dataclass(frozen=True, slots=True)
class ShownPart:
    """A part of an output that shows an object. `text` is verbatim."""

    source: str
    text: str


@dataclass(frozen=True, slots=True)
class Resource:
    """An object of any kind. `wanted` and `ready` count replicas of a workload, and containers of a pod.

    `status` is the phase of a pod, claim or volume, or the state of a node or a job; `target` what is bound to a claim or
    a volume, or what an autoscaler scales; `address` the IP of a service, and `endpoints` its ready ones, None where they
    were not read. A workload has the fields of its pods' template.
    """

    kind: str
    name: str
    namespace: str = ""
    created: datetime | None = None
    status: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    wanted: int | None = None
    ready: int | None = None
    restarts: int | None = None
    restarted: datetime | None = None
    owner: str = ""
    node: str = ""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    selector: Mapping[str, str] = field(default_factory=dict[str, str])
    containers: tuple[Container, ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict[str, str])
    claims: tuple[str, ...] = ()
    address: str = ""
    ports: tuple[Port, ...] = ()
    endpoints: tuple[str, ...] | None = None
    hard: Mapping[str, str] = field(default_factory=dict[str, str])
    used: Mapping[str, str] = field(default_factory=dict[str, str])
    capacity: str = ""
    modes: tuple[str, ...] = ()
    storage_class: str | None = None
    target: str = ""
    cordoned: bool | None = None
    is_control: bool | None = None  # a node of the control plane
    shown: tuple[ShownPart, ...] = ()

    def and_(self, other: Resource) -> Resource:
        """Return the object with what `other`, read later, says of it."""
        by_name = {each.name: each for each in self.containers}
        containers = tuple(
            _with(by_name[each.name], each) if each.name in by_name else each for each in other.containers
        )
        merged = _with(self, other)
        return replace(merged, containers=containers or self.containers, shown=(*self.shown, *other.shown))

    @property
    def app(self) -> str:
        """Return the name of the workload that a pod or a set belongs to, or of the object itself."""
        if self.kind in ("Pod", ""):
            return app_of(self.name)
        return _HASH.sub("", self.name) if self.kind == "ReplicaSet" else self.name

    @property
    def is_counted(self) -> bool:
        """Return whether the object's state was read at all; a set of an earlier rollout wants no pods."""
        if self.kind in ("Pod", "Claim", "Volume", "Node", "Job"):
            return bool(self.status)
        return self.wanted is not None and not (self.kind == "ReplicaSet" and self.wanted == 0)


def _with(old: S, new: S) -> S:
    """Return `old` with the values of `new` that are known. What a container waits for is known to be nothing, too."""
    unknown: tuple[object, ...] = (None, {}, ()) if isinstance(new, Container) else (None, "", {})
    changed = {each.name: value for each in fields(new) if (value := getattr(new, each.name)) not in unknown}
    return replace(old, **{name: value for name, value in changed.items() if value != () or name == "endpoints"})


@dataclass(frozen=True, slots=True)
class Event:
    """An event about an object. `at` is when it was last seen, None if that is not told."""

    reason: str
    kind: str
    name: str
    message: str
    shown: ShownPart
    at: datetime | None = None
    is_warning: bool = True


@dataclass(frozen=True, slots=True)
class Daemon:
    """A service of the system of a node, such as the kubelet. `state` is that of systemd: active, inactive, failed."""

    name: str
    node: str
    state: str
    line: str
    source: str


@dataclass(frozen=True, slots=True)
class Complaint:
    """A line of a monitoring system, a check or a log about an object."""

    kind: str
    name: str
    text: str
    source: str

    @property
    def shown(self) -> ShownPart:
        return ShownPart(self.source, self.text)


@dataclass
class Cluster:
    """All that was read, as of `now`. `focus` are the names that the incident is about.

    `measured` are reports of monitoring, `said` current trouble in logs, and `refusals` what says that something does not
    answer.
    """

    now: datetime
    focus: frozenset[str] = frozenset()
    resources: dict[tuple[str, str], Resource] = field(default_factory=dict[tuple[str, str], Resource])
    events: list[Event] = field(default_factory=list[Event])
    daemons: list[Daemon] = field(default_factory=list[Daemon])
    measured: list[Complaint] = field(default_factory=list[Complaint])
    said: list[Complaint] = field(default_factory=list[Complaint])
    refusals: list[Complaint] = field(default_factory=list[Complaint])

    def add(self, resource: Resource) -> None:
        key = (resource.kind, resource.name)
        self.resources[key] = self.resources[key].and_(resource) if key in self.resources else resource

    def apply(self, resources: Iterable[Resource]) -> None:
        """Add what manifests say of objects beyond what was read of them; one that is not among those of its kind is absent."""
        kinds = {kind for kind, _ in self.resources}
        for resource in resources:
            key = (resource.kind, resource.name)
            if key in self.resources or resource.kind not in kinds:
                self.resources[key] = resource.and_(self.resources[key]) if key in self.resources else resource

    def of(self, *kinds: str) -> Iterator[Resource]:
        return (each for (kind, _), each in self.resources.items() if kind in kinds)

    @property
    def addresses(self) -> Mapping[str, str]:
        """Return the names of services by their addresses."""
        return {each.address: each.name for each in self.of("Service") if each.address}

    def find(self, kind: str, name: str) -> Resource | None:
        return self.resources.get((kind, name))

    def pods(self, app: str) -> list[Resource]:
        return [each for each in self.of("Pod") if each.app == app]

    def is_recent(self, at: datetime | None, *, unknown: bool = True) -> bool:
        """Return whether something belongs to the present; `unknown` is for a time that is not told."""
        return unknown if at is None or at > self.now + RECENT else self.now - at <= RECENT

    def selected_by(self, service: Resource) -> list[Resource]:
        """Return the pods, and the templates of workloads, that a service selects."""
        labelled = (each for each in self.of("Pod", "Workload") if each.labels)
        return [each for each in labelled if service.selector and service.selector.items() <= each.labels.items()]

    def has_ended(self, pod: Resource, container: Container) -> bool:
        """Return whether a container ended badly within the present, or keeps ending."""
        if container.waits == "CrashLoopBackOff":
            return True
        if container.last in (None, "Completed") or container.code == 0:
            return False
        unknown = container.ready is False or self.is_recent(pod.created)
        return self.is_recent(pod.restarted or container.at, unknown=unknown)

    def is_well(self, each: Resource) -> bool:
        """Return whether an object is as it should be, as far as was read of it."""
        if each.kind == "Pod":
            if each.status in DONE:
                return True
            failing = any(self.has_ended(each, one) for one in each.containers) or (
                not each.containers and bool(each.restarts) and self.is_recent(each.restarted, unknown=False)
            )
            return each.status == "Running" and each.wanted == each.ready and not failing
        if each.kind in ("Claim", "Volume"):
            return each.status == "Bound"
        if each.kind == "Node":
            return each.status == "Ready" and not any(
                one.type.endswith("Pressure") and one.status == "True" for one in each.conditions
            )
        if each.kind == "Job":
            return each.status != "Failed"
        return each.wanted is not None and each.ready is not None and each.ready >= each.wanted

    def is_past(self, pod: Resource) -> bool:
        """Return whether a pod that is not well no longer counts: replaced by ready ones, or an attempt of a job that is done."""
        if pod.status not in (
            "Failed",
            "Evicted",
            "Error",
            "OOMKilled",
            "ContainerStatusUnknown",
            "NodeLost",
            "Shutdown",
        ):
            return False
        jobs = [each for each in self.of("Job") if pod.name.startswith(f"{each.name}-")]
        if jobs:
            return all(map(self.is_well, jobs))
        if any(each.status in DONE for each in self.pods(pod.app)):
            return True
        workload = self.find("Workload", pod.app)
        if workload is not None and workload.is_counted:
            return self.is_well(workload)
        return any(each.status == "Running" and self.is_well(each) for each in self.pods(pod.app))

    def is_done(self, app: str) -> bool:
        """Return whether all pods of a workload have done their work, so that what they logged has passed."""
        pods = self.pods(app)
        return bool(pods) and all(each.status in DONE or self.is_past(each) for each in pods)

    @cached_property
    def unwell(self) -> frozenset[str]:
        """Return the names of the workloads that lack a replica, or that have a pod which is not as it should be."""
        return frozenset(
            each.app
            for each in self.of("Pod", "Workload", "ReplicaSet", "Job")
            if each.is_counted and not self.is_well(each) and not (each.kind == "Pod" and self.is_past(each))
        )

    def is_subject_well(self, subject: str) -> bool:
        """Return whether a subject was read and is well, so that a complaint about its state has passed."""
        about = [each for (_, name), each in self.resources.items() if name == subject and each.is_counted]
        return bool(about) and all(self.is_well(each) or (each.kind == "Pod" and self.is_past(each)) for each in about)

    def is_over(self, event: Event) -> bool:
        """Return whether what an event warns of has passed: its object is well now, is gone, or has what it lacked."""
        if not self.is_recent(event.at):
            return True
        resource = self.find(event.kind, event.name)
        if resource is None:
            app = Resource(event.kind, event.name).app
            others = [each for each in self.of(event.kind) if each.app == app]
            return event.kind in ("Pod", "ReplicaSet") and bool(others)
        if event.kind == "Pod" and self.is_past(resource):
            return True
        pods = len(self.pods(resource.app))
        is_created = event.reason == "FailedCreate" and pods >= (resource.wanted or 1)
        is_restarted = (
            event.kind == "Pod" and event.at is not None and self.now - event.at < FRESH and bool(resource.restarts)
        )
        return is_created or (resource.is_counted and self.is_well(resource) and not is_restarted)
