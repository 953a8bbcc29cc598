"""The rows of `kubectl get`, of lineage trees and the like: what stands in a state in which it should not be."""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.model.incident import EvidenceKind
from core.rca.tool_outputs.clue import Clue, Lines, Role, cut

STATES = {
    "OOMKilled": 0.8,
    "Evicted": 0.6,
    "NotReady": 0.7,
    "Lost": 0.7,
    "CreateContainerConfigError": 0.55,
    "CreateContainerError": 0.55,
    "RunContainerError": 0.55,
    "InvalidImageName": 0.55,
    "ErrImageNeverPull": 0.55,
    "ImagePullBackOff": 0.55,
    "ErrImagePull": 0.55,
    "CrashLoopBackOff": 0.45,
    "Error": 0.4,
    "StartError": 0.5,
    "ContainerCannotRun": 0.5,
    "ContainerStatusUnknown": 0.5,
    "DeadlineExceeded": 0.5,
    "UnexpectedAdmissionError": 0.6,
    "Failed": 0.4,
    "Pending": 0.4,
    "Unknown": 0.5,
    "Missing": 0.45,
    "Degraded": 0.45,
    "OutOfSync": 0.4,
    "SyncFailed": 0.6,
    "SchedulingDisabled": 0.5,
    "Terminating": 0.3,
}
"""The states that something may not stay in, and how much each explains."""

_NAMED = re.compile(r"[a-z][\w.-]*[-\w]$|[A-Z]\w+/\S+$")
_STATE = re.compile(rf"(?:(?<=\s)|(?<=Init:)|(?<=,))(?:{'|'.join(STATES)})(?=[\s,]|$)")
_READY = re.compile(r"\s(?P<ready>\d+)/(?P<wanted>\d+)\s+(?P<status>\S+)(?:\s+(?P<restarts>\d+))?")
_DONE = frozenset({"Completed", "Succeeded", "Terminating"})
_INGRESSES = re.compile(r"(?:NAMESPACE\s+)?NAME\s+CLASS\s+HOSTS\s+ADDRESS\b")
_ENDPOINTS = re.compile(r"(?:NAMESPACE\s+)?NAME\s+ENDPOINTS\b")
_UNKNOWN_METRIC = re.compile(r"<unknown>/\d")
_TREE = re.compile(r"^[\s│├└─]+")
_WAITING = re.compile(r"Init:\d+/\d+|PodInitializing|ContainerCreating")
_RESTARTS = re.compile(r"\s(?P<count>\d+) \(\d+[smh][\dsmh]* ago\)")
OFTEN = 3  # restarts, the last of them within hours
RESTARTED = 0.35  # strength of a row that shows them
NOT_READY = 0.3  # strength of a row that shows nothing but that something is not ready


def table_clues(lines: Lines) -> Iterator[Clue]:
    address = next((line.index("ADDRESS") for line in lines.all[:2] if _INGRESSES.match(line)), None)
    if address is not None:
        yield from (clue for line in lines.all if (clue := _unaddressed(line, address)))
        return
    endpoints = any(_ENDPOINTS.match(line) for line in lines.all[:2])
    for line in lines.all:
        clue = _unserved(line) if endpoints else _clue(line)
        if clue is not None:
            yield clue


def _unaddressed(line: str, column: int) -> Clue | None:
    """An ingress that no controller serves, in a list of them; `column` is where its address should stand."""
    if not line.strip() or not line[column : column + 1].isspace():
        return None
    namespace, name = named_in(line)
    said = f"the ingress {name} has no address: no controller serves its class"
    return Clue(name, said, cut(line.strip()), 0.6, Role.CAUSE, EvidenceKind.TOPOLOGY, namespace=namespace)


def _unserved(line: str) -> Clue | None:
    """A service that no pod answers for, in a list of endpoints."""
    namespace, name = named_in(line)
    if "<none>" not in line.split()[1:3]:
        return None
    said = f"the service {name} has no endpoints: its selector matches no ready pod"
    return Clue(name, said, cut(line.strip()), 0.85, Role.CAUSE, EvidenceKind.TOPOLOGY, namespace=namespace)


def _clue(line: str) -> Clue | None:
    states = _STATE.findall(line)
    ready = _READY.search(line)
    state = max(states, key=STATES.__getitem__) if states else ""
    waits = ready is not None and ready["ready"] != ready["wanted"] and ready["status"] not in _DONE
    restarts = _RESTARTS.search(line)
    often = restarts is not None and int(restarts["count"]) >= OFTEN
    if not state and not waits and not often and not _UNKNOWN_METRIC.search(line):
        return None
    strength = max(STATES.get(state, 0.0), NOT_READY if waits else 0.0, RESTARTED if often else 0.0)
    namespace, name = named_in(line)
    if _UNKNOWN_METRIC.search(line):
        said = f"the metric by which {name} is scaled cannot be read"
        return Clue(name, said, cut(line.strip()), 0.6, Role.CAUSE, EvidenceKind.TOPOLOGY, namespace=namespace)
    if not state and ready is not None and (waiting := _WAITING.search(line)):
        state = waiting.group()
    shown = f" ({ready['ready']} of {ready['wanted']} ready)" if ready else ""
    if often and restarts is not None:
        shown += f", restarted {restarts['count']} times"
    return Clue(
        subject=name,
        statement=f"{name} is {state or ('not ready' if waits else 'running')}{shown}",
        quote=cut(line.strip()),
        strength=strength,
        role=Role.EFFECT,
        kind=EvidenceKind.TOPOLOGY,
        namespace=namespace,
    )


def named_in(line: str) -> tuple[str, str]:
    """The namespace, if any, and the name in a row."""
    columns = _TREE.sub("", line).split()
    if not columns:
        return "", ""
    if "/" in columns[0] and not columns[0].startswith("/"):
        return "", columns[0].rpartition("/")[2]
    second = columns[1] if len(columns) > 1 else ""
    if second and _NAMED.match(second) and second not in ("none", "true", "false"):
        return columns[0], second.rpartition("/")[2]
    return "", columns[0]
