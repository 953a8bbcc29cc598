"""The objects of a cluster, as far as they were read, each merged from all outputs that show it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

RECENT = 3_600.0  # seconds within which a restart or a repeated event belongs to the present
_GENERATED = re.compile(r"(?:-[a-f0-9]{6,10}|-[bcdfghjklmnpqrstvwxz2456789]{8,10})?-[bcdfghjklmnpqrstvwxz2456789]{5}$")
"""Matches the suffixes that Kubernetes generates: no vowels, and no digits that look like them."""
_HASH = re.compile(r"-(?:[a-f0-9]{6,10}|[bcdfghjklmnpqrstvwxz2456789]{8,10})$")
_UNITS = {"": 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15} | {
    f"{unit}i": 1024.0**power for power, unit in enumerate("KMGTP", 1)
}
_QUANTITY = re.compile(r"^(\d{1,20}(?:\.\d{1,9})?)(m|k|[MGTP]|[KMGTP]i)?$")
_NUMBERED = re.compile(r"-\d+$")


def stem(name: str) -> str:
    """Return a name without its generated suffix: “api” for “api-7d4b9c6f5d-x2x4z”."""
    return _GENERATED.sub("", name)


def app_of(pod: str) -> str:
    """Return the name of the workload of a pod: “api” for “api-7d4b9c6f5d-x2x4z”, “db” for “db-0”."""
    return stem(pod) if stem(pod) != pod else _NUMBERED.sub("", pod)


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
    """A container: its specification, and its state where it was read."""

    name: str
    ports: tuple[Port, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    probes: Mapping[str, Probe] = field(default_factory=dict[str, Probe])
    limits: Mapping[str, str] = field(default_factory=dict[str, str])
    state: str = ""  # the reason why it waits or ended
    last: str = ""  # the reason why its previous instance ended
    restarts: int | None = None  # None where its state was not read


@dataclass(frozen=True, slots=True)
class ShownPart:
    """A part of an output that shows an object. `text` is verbatim."""

    source: str
    text: str


@dataclass(frozen=True, slots=True)
class Thing:
    """An object. `wanted` and `ready` count replicas of a workload, and containers of a pod.

    `status` is the phase of a pod, claim or volume, or the state of a node; `target` what is bound to a claim or a volume;
    `endpoints` is None where they were not read. A workload has the fields of its pods' template.
    """

    kind: str
    name: str
    namespace: str = ""
    status: str = ""
    wanted: int | None = None
    ready: int | None = None
    restarts: int | None = None
    restarted: float | None = None  # seconds ago
    owner: str = ""
    node: str = ""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    selector: Mapping[str, str] = field(default_factory=dict[str, str])
    containers: tuple[Container, ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict[str, str])
    claims: tuple[str, ...] = ()
    ports: tuple[Port, ...] = ()
    endpoints: tuple[str, ...] | None = None
    hard: Mapping[str, str] = field(default_factory=dict[str, str])
    used: Mapping[str, str] = field(default_factory=dict[str, str])
    capacity: str = ""
    modes: tuple[str, ...] = ()
    storage_class: str | None = None
    target: str = ""
    cordoned: bool = False
    is_control: bool = False  # a node of the control plane
    why: str = ""  # the message of an unmet condition
    shown: tuple[ShownPart, ...] = ()

    def and_(self, other: Thing) -> Thing:
        """Return the object with what `other`, read later, adds: its fields win where it has a value, but for containers."""
        changed = {name: value for name, value in _given(other) if name not in ("containers", "shown")}
        by_name = {each.name: each for each in self.containers}
        containers = tuple(_joined(by_name.get(each.name), each) for each in other.containers) or self.containers
        return replace(self, **changed, containers=containers, shown=(*self.shown, *other.shown))

    @property
    def app(self) -> str:
        """Return the name of the workload that a pod or a set belongs to, or of the object itself."""
        if self.kind in ("Pod", ""):
            return app_of(self.name)
        return _HASH.sub("", self.name) if self.kind == "ReplicaSet" else self.name

    @property
    def is_well(self) -> bool:
        """Return whether the object is known to be as it should: ready, and not restarted of late."""
        late = any(each.restarts for each in self.containers) if self.restarted is None else self.restarted < RECENT
        if self.kind == "Pod":
            counted = self.wanted is not None and self.wanted == self.ready
            return self.status in ("Succeeded", "Completed") or (
                counted and self.status == "Running" and not (late or (self.restarts and self.restarted is None))
            )
        if self.kind in ("Claim", "Volume"):
            return self.status == "Bound"
        if self.kind == "Node":
            return self.status == "Ready"
        return self.wanted is not None and self.ready is not None and self.ready >= self.wanted > 0


def _given(read: Thing | Container) -> Iterator[tuple[str, Any]]:
    """Yield the fields that have a value. 0 and False are values."""
    named = ((each.name, getattr(read, each.name)) for each in fields(read))
    return ((name, value) for name, value in named if value not in (None, "", (), {}))


def _joined(old: Container | None, new: Container) -> Container:
    if old is None:
        return new
    state = {} if new.restarts is None else {"state": new.state, "last": new.last}  # it runs where it has no reason
    return replace(old, **{**dict(_given(new)), **state})


@dataclass(frozen=True, slots=True)
class Event:
    """An event about an object. `message` is its last column."""

    reason: str
    kind: str
    name: str
    message: str
    shown: ShownPart


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
    """A line of a monitoring system or a log about an object."""

    kind: str
    name: str
    text: str
    source: str

    @property
    def shown(self) -> ShownPart:
        return ShownPart(self.source, self.text)


@dataclass
class Cluster:
    """All that was read. `absent` are objects that somebody applied, and that are not among those of their kind."""

    things: dict[tuple[str, str], Thing] = field(default_factory=dict[tuple[str, str], Thing])
    absent: dict[tuple[str, str], Thing] = field(default_factory=dict[tuple[str, str], Thing])
    events: list[Event] = field(default_factory=list[Event])
    daemons: list[Daemon] = field(default_factory=list[Daemon])
    measured: list[Complaint] = field(default_factory=list[Complaint])
    said: list[Complaint] = field(default_factory=list[Complaint])

    def add(self, thing: Thing) -> None:
        key = (thing.kind, thing.name)
        self.things[key] = self.things[key].and_(thing) if key in self.things else thing

    def apply(self, things: Iterable[Thing]) -> None:
        """Add what manifests of existing objects say beyond what was read of them."""
        kinds = {kind for kind, _ in self.things}
        missed = [each.message for each in self.events if "not found" in each.message]
        for thing in things:
            key = (thing.kind, thing.name)
            is_missed = any(f'"{thing.name}" not found' in each for each in missed)
            if key in self.things or (thing.kind not in kinds and not is_missed):
                self.things[key] = thing.and_(self.things[key]) if key in self.things else thing
            else:
                self.absent[key] = thing

    def of(self, *kinds: str) -> Iterator[Thing]:
        return (thing for (kind, _), thing in self.things.items() if kind in kinds)

    def find(self, kind: str, name: str) -> Thing | None:
        return self.things.get((kind, name))

    @cached_property
    def unwell(self) -> frozenset[str]:
        """Return the names of the workloads of which a pod is missing, not ready or restarted of late."""
        names = {each.app for each in self.of("Pod", "Workload", "ReplicaSet") if not each.is_well and _counts(each)}
        return frozenset(names)

    def is_well(self, subject: str) -> bool:
        """Return whether a subject was read and is well, so that a complaint about its state has passed."""
        about = [thing for (_, name), thing in self.things.items() if name == subject and _counts(thing)]
        return bool(about) and all(each.is_well for each in about)

    @cached_property
    def healthy(self) -> frozenset[str]:
        """Return the sources that only show daemons that run, whose logs always complain of something."""
        states: dict[str, set[str]] = {}
        for each in self.daemons:
            states.setdefault(each.source, set()).add(each.state)
        return frozenset(source for source, shown in states.items() if shown == {"active"})

    def is_over(self, event: Event) -> bool:
        """Return whether what an event warns of has passed.

        Its object is well now, has the pods that it could not create, or was replaced by another of its workload.
        """
        thing = self.find(event.kind, event.name)
        if thing is None:
            app = Thing(event.kind, event.name).app
            return event.kind in ("Pod", "ReplicaSet") and any(each.app == app for each in self.of(event.kind))
        created = event.reason == "FailedCreate" and thing.wanted and len(self.pods(thing.app)) >= thing.wanted
        return thing.is_well or bool(created)

    def pods(self, app: str) -> list[Thing]:
        return [each for each in self.of("Pod") if each.app == app]


def _counts(thing: Thing) -> bool:
    """Return whether an object's state was read at all; a set of an earlier rollout wants no pods."""
    if thing.kind in ("Pod", "Claim", "Volume", "Node"):
        return bool(thing.status)
    return thing.wanted is not None and not (thing.kind == "ReplicaSet" and thing.wanted == 0)
