"""Models and text forms of Kubernetes pods and events. https://kubernetes.io/docs/reference/kubernetes-api/"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Generic, TypeVar

from pydantic import AliasPath, AwareDatetime, BaseModel, Field

EVENTS_HEAD = "LAST SEEN                TYPE     REASON              OBJECT  MESSAGE"

T = TypeVar("T")


class Metadata(BaseModel):
    name: str = ""
    namespace: str = ""
    continuation: str = Field("", alias="continue")


class State(BaseModel):
    reason: str = ""
    message: str = ""
    exitCode: int | None = None
    finishedAt: AwareDatetime | None = None


class ContainerStatus(BaseModel):
    name: str
    image: str = ""
    ready: bool = False
    restartCount: int = 0
    state: dict[str, State | None] = {}
    lastState: dict[str, State | None] = {}


class Condition(BaseModel):
    type: str
    status: str
    reason: str = ""
    message: str = ""


class PodStatus(BaseModel):
    phase: str = "Unknown"
    reason: str = ""
    message: str = ""
    conditions: list[Condition] = []
    containerStatuses: list[ContainerStatus] = []
    initContainerStatuses: list[ContainerStatus] = []


class Container(BaseModel):
    name: str
    command: list[str] = []
    args: list[str] = []
    limits: dict[str, str] = Field({}, validation_alias=AliasPath("resources", "limits"))
    requests: dict[str, str] = Field({}, validation_alias=AliasPath("resources", "requests"))


class PodSpec(BaseModel):
    nodeName: str = ""
    containers: list[Container] = []


class Pod(BaseModel):
    metadata: Metadata
    spec: PodSpec = PodSpec()
    status: PodStatus


class Event(BaseModel):
    type: str = "Normal"
    reason: str = ""
    message: str = ""
    count: int | None = None
    kind: str = Field("", validation_alias=AliasPath("involvedObject", "kind"))
    involved: str = Field("", validation_alias=AliasPath("involvedObject", "name"))
    lastTimestamp: AwareDatetime | None = None
    eventTime: AwareDatetime | None = None
    last: AwareDatetime | None = Field(None, validation_alias=AliasPath("series", "lastObservedTime"))
    repeated: int | None = Field(None, validation_alias=AliasPath("series", "count"))

    @property
    def at(self) -> datetime | None:
        """Return the time of the last occurrence."""
        return self.last or self.lastTimestamp or self.eventTime


class List(BaseModel, Generic[T]):
    metadata: Metadata
    items: list[T]


def format_event(at: datetime, event: Event) -> str:
    """Return a row like `kubectl get events`, with the time instead of the age."""
    named = f"{event.kind.lower()}/{event.involved}"
    count = event.repeated or event.count or 1
    times = f" (x{count})" if count > 1 else ""
    message = f"{' '.join(event.message.split())}{times}"
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC  {event.type:<7}  {event.reason:<18}  {named}  {message}"


def described(pod: Pod) -> str:
    """Return a pod like `kubectl describe`, limited to the fields that explain why it does not serve."""
    specified = {each.name: each for each in pod.spec.containers}
    lines = [f"Name:  {pod.metadata.name}", f"Namespace:  {pod.metadata.namespace}"]
    lines += [f"Node:  {pod.spec.nodeName}"] if pod.spec.nodeName else []
    lines += [f"Status:  {pod.status.phase}"]
    lines += [
        f"{name}:  {text}" for name, text in (("Reason", pod.status.reason), ("Message", pod.status.message)) if text
    ]
    for title, statuses in (
        ("Init Containers", pod.status.initContainerStatuses),
        ("Containers", pod.status.containerStatuses),
    ):
        lines += [f"{title}:"] if statuses else []
        lines += [line for each in statuses for line in _container(each, specified.get(each.name))]
    unmet = [each for each in pod.status.conditions if each.status != "True"]
    lines += ["Conditions:", "  Type  Status  Reason  Message"] if unmet else []
    lines += [
        f"  {each.type}  {each.status}  {each.reason}  {' '.join(each.message.split())}".rstrip() for each in unmet
    ]
    return "\n".join(lines)


def _container(status: ContainerStatus, specified: Container | None) -> list[str]:
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


def _state(state: State) -> list[str]:
    fields = (
        ("Reason", state.reason),
        ("Message", " ".join(state.message.split())),
        ("Exit Code", "" if state.exitCode is None else str(state.exitCode)),
        ("Finished", f"{state.finishedAt.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if state.finishedAt else ""),
    )
    return [f"      {name}:  {text}" for name, text in fields if text]
