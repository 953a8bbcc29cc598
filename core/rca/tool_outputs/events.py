"""Kubernetes events, as `kubectl describe` and `kubectl get events` list them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.model.incident import EvidenceKind
from core.rca.tool_outputs.clue import MAX_QUOTE, Clue, Lines, Role, cut, spoken
from core.rca.tool_outputs.trouble import telling, trouble

_ROW = re.compile(r"(?:^|\s)(?P<type>Normal|Warning)\s+(?P<reason>[A-Z]\w+)\s+(?P<rest>\S.*)$")
_WARNING = re.compile(r"(?:^|\s)Warning\s+[A-Z]\w+\s")
_COLUMNS = re.compile(r"\s{2,}")
_OBJECT = re.compile(r"^\w[\w.]*/(?P<name>[\w.-]+)$")

_EXPLAIN = 0.95  # strength of an event whose message says why something cannot be done
_OTHER_WARNING = 0.7

_CAUSES = {
    "Unhealthy": 0.8,
    "Evicted": 0.93,
    "Preempted": 0.85,
    "Preempting": 0.6,
    "OOMKilling": 0.95,
    "SystemOOM": 0.95,
    "NodeNotReady": 0.85,
    "NodeHasDiskPressure": 0.85,
    "EvictionThresholdMet": 0.85,
    "DeadlineExceeded": 0.9,
    "FailedGetResourceMetric": 0.8,
    "FailedComputeMetricsReplicas": 0.75,
    "InvalidDiskCapacity": 0.1,  # every fresh node of some providers says so
    "DNSConfigForming": 0.3,
    "FailedToUpdateEndpoint": 0.4,
    "FailedKillPod": 0.5,
}
"""How much an event of a reason explains, where it is not as much as its message does."""

_EFFECTS = {"BackOff": 0.4, "BackoffLimitExceeded": 0.45, "UnexpectedJob": 0.3, "FailedPreStopHook": 0.4}
_TELLING_NORMAL = {
    "WaitForFirstConsumer": 0.5,
    "ExternalProvisioning": 0.55,
    "NotTriggerScaleUp": 0.6,
    "Killing": 0.3,
    "BackOff": 0.5,
}
_EMPTY = re.compile(r"^Error: (?:ErrImagePull|ImagePullBackOff|CrashLoopBackOff)$")  # said again what was said before


def event_clues(lines: Lines, subject: str) -> Iterator[Clue]:
    """The clues of all events of an output; `subject` is what they are about where a row does not say so."""
    for number, line in enumerate(lines.all):
        row = _ROW.search(line)
        if row is not None:
            yield from _clue(lines, number, row, subject)


def _clue(lines: Lines, number: int, row: re.Match[str], subject: str) -> Iterator[Clue]:
    columns = _COLUMNS.split(row["rest"].strip())
    message = columns[-1]
    named = next((found["name"] for column in columns if (found := _OBJECT.match(column))), subject)
    strength, role = _weight(row["type"], row["reason"], message)
    if strength <= 0:
        return
    line = lines.all[number]
    yield Clue(
        subject=named,
        statement=f"{row['reason']}: {spoken(message)}",
        quote=lines.quote(number, wanted=_beside(lines, number))
        if len(line) <= MAX_QUOTE
        else cut(message, telling(message)),
        strength=strength,
        role=role,
        kind=EvidenceKind.TOPOLOGY,
    )


def _beside(lines: Lines, number: int) -> list[int]:
    """The warnings next to an event."""
    places = (number + 1, number - 1)
    return [place for place in places if 0 <= place < len(lines.all) and _WARNING.search(lines.all[place])]


def _weight(kind: str, reason: str, message: str) -> tuple[float, Role]:
    if kind == "Normal":
        strength = _TELLING_NORMAL.get(reason, 0.0)
        return (0.7 if strength and "liveness probe" in message else strength), Role.EFFECT
    if reason == "BackOff" and "pulling image" in message:
        return 0.6, Role.EFFECT
    if reason in _EFFECTS or _EMPTY.match(message):
        return _EFFECTS.get(reason, 0.4), Role.EFFECT
    if reason in _CAUSES:
        return _CAUSES[reason], Role.CAUSE
    found = trouble(message)
    says_why = reason.startswith(("Failed", "Provisioning", "Err", "Inspect")) and found and found.role is Role.CAUSE
    return (_EXPLAIN if says_why else _OTHER_WARNING), Role.CAUSE
