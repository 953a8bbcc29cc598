"""What `kubectl describe` and YAML say about pods, nodes, services, claims, jobs and the rest beyond containers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from core.model.incident import EvidenceKind
from core.rca.tool_outputs.clue import Clue, Lines, Role, cut, spoken
from core.rca.tool_outputs.containers import container_clues
from core.rca.tool_outputs.events import event_clues
from core.rca.tool_outputs.fields import NOTHING, Node, parse_fields
from core.rca.tool_outputs.trouble import telling, trouble

MAX_SUPPORTED = 20  # of the strongest clues for which the configuration behind them is looked up
_TEXT_FIELDS = frozenset({"message", "description", "error", "lasterror", "failuremessage"})
_PRESSURE = re.compile(r"^(?:Memory|Disk|PID|Network)\w*(?:Pressure|Unavailable)$")
_CONDITION = re.compile(r"^(?P<type>[A-Z]\w+)\s+(?P<status>True|False|Unknown)\b\s*(?P<rest>.*)$")
_FAILED_PODS = re.compile(r"(?P<count>[1-9]\d{0,8}) Failed")
_COLUMNS = re.compile(r"\s{2,}")
_ALL_STOPPED = re.compile(r"^0 desired")
_CHECKED = {"Readiness": "readiness", "Liveness": "liveness", "Startup": "startup"}


def resource_clues(lines: Lines, subject: str) -> Iterator[Clue]:
    """The clues of a described resource, or of several in a row, each with the configuration that explains it."""
    root = parse_fields(lines.all)
    name = subject or _name(root)
    found = [*container_clues(root, lines, name), *_own(root, lines, name), *event_clues(lines, name)]
    for place, clue in enumerate(sorted(found, key=lambda clue: -clue.strength)):
        support = clue.support or (_support(clue, root, lines) if place < MAX_SUPPORTED else ())
        yield replace(clue, support=support)


def _name(root: Node) -> str:
    metadata = root.child("metadata")
    return root.get("name") or (metadata.get("name") if metadata else "")


def _own(root: Node, lines: Lines, name: str) -> Iterator[Clue]:
    yield from _phase(root, lines, name)
    for node in root.walk():
        if node.key == "" and node.parent is not None and node.parent.key == "conditions":
            yield from _condition_row(node, lines, name)
        elif node.key == "-" and node.parent is not None and node.parent.key == "conditions":
            yield from _condition_item(node, lines, node.resource() or name)
        elif node.key in _TEXT_FIELDS and not _in_container(node):
            yield from _text(node, lines, name)
        elif (rule := _RULES.get(node.key)) is not None and (said := rule(node)) is not None:
            statement, strength = said
            yield _clue(name, statement.format(name=name), strength, lines.quote(node.line, node.last_line), Role.CAUSE)


def _clue(subject: str, statement: str, strength: float, quote: str, role: Role) -> Clue:
    return Clue(subject, statement, quote, strength, role, EvidenceKind.TOPOLOGY)


def _phase(root: Node, lines: Lines, name: str) -> Iterator[Clue]:
    """The phase of a pod or claim with the reason that is given for it."""
    status = root.child("status")
    if status is None:
        return
    phase = status.value or status.get("phase")
    holder = root if status.value else status
    reason, message = holder.get("reason"), holder.whole("message")
    if phase not in ("Pending", "Failed", "Lost", "Unknown"):
        return
    tells = bool(reason or message)
    storage = f"storage class {root.get('storageclass')}" if root.get("storageclass") else ""
    parts = [part for part in (reason, spoken(message) if message else "", storage) if part]
    node = holder.child("message") or holder.child("reason") or status
    line = status.line if status.value else node.line
    yield _clue(
        name,
        f"{name} is {phase}{': ' if parts else ''}{', '.join(parts)}",
        0.95 if tells else 0.4,
        lines.quote(line, node.last_line if node.line - line < 4 else line),
        Role.CAUSE if tells else Role.EFFECT,
    )


def _condition_row(node: Node, lines: Lines, name: str) -> Iterator[Clue]:
    row = _CONDITION.match(node.value)
    if row is not None:
        rest = _COLUMNS.split(row["rest"].strip())
        reason, message = rest[0], rest[-1] if len(rest) > 1 else ""
        if len(rest) >= 4:  # a node: two times, the reason and the message
            reason, message = rest[-2], rest[-1]
        yield from _condition(row["type"], row["status"], reason, message, _shortened(lines.all[node.line]), name)


def _condition_item(node: Node, lines: Lines, name: str) -> Iterator[Clue]:
    quote = lines.quote(node.line, node.last_line)
    yield from _condition(node.get("type"), node.get("status"), node.get("reason"), node.whole("message"), quote, name)


def _condition(kind: str, status: str, reason: str, message: str, quote: str, name: str) -> Iterator[Clue]:
    bad_if_true = bool(_PRESSURE.match(kind)) or kind in ("ReplicaFailure", "Failed", "Stalled") or "Error" in kind
    if status not in ("True", "False", "Unknown") or (status == "True") != bad_if_true:
        return
    if kind in ("ScalingLimited", "Suspended", "Reconciling"):
        return
    found = trouble(message) if message else None
    if _PRESSURE.match(kind) or (found is not None and found.role is Role.CAUSE):
        strength, role = 0.85, Role.CAUSE
    elif reason in ("ReasonUnschedulable", "Unschedulable", "ProgressDeadlineExceeded", "BackoffLimitExceeded"):
        strength, role = 0.4, Role.EFFECT
    else:
        strength, role = 0.25, Role.EFFECT
    said = ", ".join(part for part in (reason, spoken(message)) if part)
    yield _clue(name, f"{name} has {kind} {status}{f': {said}' if said else ''}", strength, quote, role)


def _text(node: Node, lines: Lines, name: str) -> Iterator[Clue]:
    """A message in YAML or JSON."""
    message = " ".join([node.value, *(child.value for child in node.children if not child.key)]).strip("\"', ")
    if node.parent is not None and node.parent.parent is not None and node.parent.parent.key == "conditions":
        return
    found = trouble(message)
    if found is not None:
        line = lines.all[node.line]
        yield _clue(name, spoken(message), found.strength * 0.8, _shortened(line), found.role)


def _shortened(line: str) -> str:
    return cut(line.strip(), telling(line.strip()))


def _in_container(node: Node) -> bool:
    above = node.parent
    return above is not None and (above.key in ("state", "laststate", "waiting", "terminated") or above.key == "status")


Said = tuple[str, float] | None  # a statement with `{name}`, and its strength


def _endpoints(node: Node) -> Said:
    empty = node.value in NOTHING and not node.children
    return ("the service {name} has no endpoints: its selector matches no ready pod", 0.85) if empty else None


def _address(node: Node) -> Said:
    ingress = node.parent.child("ingressclass") if node.parent else None
    if ingress is None or node.value not in NOTHING:
        return None
    return f"the ingress {{name}} has no address: no controller serves its class {_safe(ingress.value)}", 0.6


def _failed_pods(node: Node) -> Said:
    failed = _FAILED_PODS.search(node.value)
    return (f"{failed['count']} pods of {{name}} failed", 0.3) if failed else None


def _unschedulable(node: Node) -> Said:
    return ("the node {name} is cordoned: nothing is scheduled on it", 0.6) if node.value == "true" else None


def _suspend(node: Node) -> Said:
    return ("{name} is suspended", 0.7) if node.value.lower() == "true" else None


def _replicas(node: Node) -> Said:
    return ("{name} is scaled to 0 replicas", 0.6) if _ALL_STOPPED.match(node.value) or node.value == "0" else None


def _backend(node: Node) -> Said:
    return (f"the backend of {{name}} is broken: {_safe(node.value)}", 0.75) if "<error:" in node.value else None


def _isolated(node: Node) -> Said:
    said = node.children[0].value if node.children else ""
    return (
        (f"the network policy {{name}} lets nothing through: {_safe(said)}", 0.7) if said.startswith("<none>") else None
    )


def _sync(node: Node) -> Said:
    return (f"{{name}} is not as declared: {_safe(node.value)}", 0.5) if node.value.startswith("OutOfSync") else None


def _health(node: Node) -> Said:
    bad = node.value.startswith(("Degraded", "Missing", "Unknown"))
    return (f"the health of {{name}} is {_safe(node.value)}", 0.4) if bad else None


def _safe(text: str) -> str:
    return text.replace("{", "(").replace("}", ")")


_RULES: dict[str, Callable[[Node], Said]] = {
    "endpoints": _endpoints,
    "unschedulable": _unschedulable,
    "suspend": _suspend,
    "address": _address,
    "podsstatuses": _failed_pods,
    "syncstatus": _sync,
    "healthstatus": _health,
    "replicas": _replicas,
    "defaultbackend": _backend,
    "allowingingresstraffic": _isolated,
    "allowingegresstraffic": _isolated,
}
"""What a field says by itself."""


def _support(clue: Clue, root: Node, lines: Lines) -> tuple[str, ...]:
    """The configuration that an event complains of."""
    said = clue.statement.lower()
    wanted: list[Node] = []
    if "no endpoints" in said:
        wanted += [*root.find("selector")]
    elif "affinity" in said or "selector" in said:
        wanted += [node for key in ("node-selectors", "nodeselectors", "nodeselector") for node in root.find(key)]
    elif "taint" in said:
        wanted += [*root.find("tolerations")]
    elif "insufficient" in said:
        wanted += [*root.find("requests")]
    elif "probe failed" in said or "probe errored" in said:
        wanted += [node for name, word in _CHECKED.items() if word in said for node in root.find(name.lower())]
    elif "image" in said and "pull" in said:
        wanted += [*root.find("image")]
    elif "not found" in said and ("configmap" in said or "secret" in said or "volume" in said):
        wanted += [node for key in ("environment", "environmentvariablesfrom", "volumes") for node in root.find(key)]
        wanted = [node for node in wanted if node.children]
    elif clue.role is Role.EFFECT and " is pending" in said:
        wanted += [
            node for key in ("node-selectors", "nodeselector", "claimname", "requests") for node in root.find(key)
        ]
    elif clue.role is Role.EFFECT and "not ready" in said:
        wanted += [*root.find("readiness")]
    elif clue.role is Role.EFFECT and "waits in crashloopbackoff" in said:
        wanted += [node for key in ("args", "command") for node in root.find(key)]
    filled = [node for node in wanted if node.value not in NOTHING or node.children]
    return (lines.quote(filled[0].line, filled[0].last_line),) if filled else ()
