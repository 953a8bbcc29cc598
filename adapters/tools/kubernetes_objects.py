"""Models and text forms of Kubernetes pods and events. https://kubernetes.io/docs/reference/kubernetes-api/"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Generic, Self, TypeVar

import yaml
from pydantic import AliasPath, BaseModel, Field, model_validator

from adapters.http import Items, Moment

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
