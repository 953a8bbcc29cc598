"""The state of containers, from `kubectl describe pod` or the pod's YAML: why one waits, and what the last one died of."""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.model.incident import EvidenceKind
from core.rca.tool_outputs.clue import MAX_QUOTE, Clue, Lines, Role, cut, spoken
from core.rca.tool_outputs.fields import Node
from core.rca.tool_outputs.trouble import telling

STARTING = frozenset({"ContainerCreating", "PodInitializing"})

_WAITING = {
    "CrashLoopBackOff": 0.45,
    "CreateContainerConfigError": 0.6,
    "CreateContainerError": 0.6,
    "RunContainerError": 0.6,
    "InvalidImageName": 0.8,
    "ErrImageNeverPull": 0.8,
    "ErrImagePull": 0.6,
    "ImagePullBackOff": 0.6,
}
"""How much the reason of a waiting container explains; the events say the rest."""

_EXIT_CODES = {
    "126": "its command cannot be executed",
    "127": "its command was not found",
    "134": "it aborted (SIGABRT)",
    "137": "it was killed (SIGKILL), as for too much memory or a failed liveness probe",
    "139": "it crashed with a segmentation fault (SIGSEGV)",
    "143": "it was told to stop (SIGTERM)",
}
STATES = 9  # lines after a state that belong to it: how it ended before, whether it is ready, its restarts
_PAST = 0.85  # how much a death still explains once the container runs again
_MANY_RESTARTS = 3
_NUMBER = re.compile(r"\d+")


def container_clues(root: Node, lines: Lines, subject: str) -> Iterator[Clue]:
    for node in root.walk():
        if node.child("state") is not None and (node.child("laststate") or node.child("ready")):
            yield from _of_container(node, lines, node.resource() or subject)


def _of_container(node: Node, lines: Lines, subject: str) -> Iterator[Clue]:
    name = node.get("name") or node.name.strip("-")
    container = f"container {name} of {subject}" if name and name != subject else f"container {subject}"
    now, before = _state(node.child("state")), _state(node.child("laststate"))
    restarts = int(found.group()) if (found := _NUMBER.search(node.get("restartcount"))) else 0
    waiting = now.get("reason") if now and _is(now, "waiting") else ""
    if now and waiting and waiting not in STARTING:
        yield _waits(now, waiting, container, lines, subject)
    if now and _is(now, "running") and node.get("ready").lower() == "false":
        said = f"{container} runs but is not ready"
        yield Clue(subject, said, lines.quote(now.line, now.last_line), 0.3, Role.EFFECT, EvidenceKind.TOPOLOGY)
    dead = next((state for state in (now, before) if state and _is(state, "terminated")), None)
    if dead is not None:
        clue = _died(dead, node, container, lines, subject, restarts)
        if clue is not None:
            yield clue


def _state(node: Node | None) -> Node | None:
    """A state as the field that holds its reason: in YAML that is one deeper, below the name of the state."""
    if node is None:
        return None
    return next((child for child in node.children if child.key in ("waiting", "terminated", "running")), node)


def _is(state: Node, name: str) -> bool:
    return name in (state.key, state.value.lower())


def _waits(now: Node, reason: str, container: str, lines: Lines, subject: str) -> Clue:
    message = now.whole("message")
    strength = _WAITING.get(reason, 0.5)
    tells = bool(message) and reason != "CrashLoopBackOff" and not message.startswith("Back-off")
    return Clue(
        subject=subject,
        statement=f"{container} waits in {reason}{f': {spoken(message)}' if tells else ''}",
        quote=_quote(now, lines),
        strength=0.95 if tells else strength,
        role=Role.CAUSE if tells else Role.EFFECT,
        kind=EvidenceKind.TOPOLOGY,
    )


def _died(dead: Node, node: Node, container: str, lines: Lines, subject: str, restarts: int) -> Clue | None:
    reason, code, message = dead.get("reason"), dead.get("exitcode"), dead.whole("message")
    support = _command(node, lines)
    role = Role.CAUSE
    if reason == "OOMKilled":
        limit, support = _memory_limit(node, lines)
        strength = 0.97
        what = f"was OOMKilled: it ran out of memory{f' at its limit of {limit}' if limit else ''}, exit code {code}"
    elif message:
        strength, what = 0.96, f"failed to run ({reason}, exit code {code}): {spoken(message)}"
    elif code not in ("", "0"):
        strength, role = (0.6, Role.CAUSE) if code in _EXIT_CODES else (0.45, Role.EFFECT)
        meaning = f": {_EXIT_CODES[code]}" if code in _EXIT_CODES else ""
        what = f"exited with code {code} ({reason or 'Error'}){meaning}"
    elif restarts >= _MANY_RESTARTS:
        strength, role = 0.5, Role.CAUSE
        what = f"ends by itself with exit code 0 ({reason}) and is started again, {restarts} times"
    else:
        return None
    runs_again = _is(_state(node.child("state")) or dead, "running")
    return Clue(
        subject=subject,
        statement=f"{container} {what}",
        quote=_quote(dead, lines),
        strength=strength * (_PAST if runs_again else 1.0),
        role=role,
        kind=EvidenceKind.TOPOLOGY,
        support=support,
    )


def _quote(state: Node, lines: Lines) -> str:
    """The lines of a state, or of a long message the part that tells why."""
    message = state.child("message")
    long = (
        message is not None and sum(len(line) + 1 for line in lines.all[state.line : message.last_line + 1]) > MAX_QUOTE
    )
    if message is not None and long:
        text = "\n".join(lines.all[message.line : message.last_line + 1])
        return cut(text, telling(text)) if len(text) > MAX_QUOTE else lines.quote(message.line, message.last_line)
    return lines.quote(state.line, state.last_line, wanted=range(state.last_line + 1, state.last_line + STATES))


def _command(node: Node, lines: Lines) -> tuple[str, ...]:
    """What a container runs, where its description says so."""
    given = [child for key in ("command", "args") if (child := node.child(key)) is not None and child.children]
    return (lines.quote(given[0].line, given[-1].last_line),) if given else ()


def _memory_limit(node: Node, lines: Lines) -> tuple[str, tuple[str, ...]]:
    """The memory limit of a container, and the lines that say so; in YAML it stands in the specification."""
    root = node
    while root.parent is not None:
        root = root.parent
    for scope in (node, root):
        for limits in scope.find("limits"):
            memory = limits.child("memory")
            if memory is not None:
                return memory.value.strip("\"'"), (lines.quote(limits.line, limits.last_line),)
    return "", ()
