"""Read objects from the text of `kubectl describe`, whose fields are nested by indentation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from core.rca.cluster.state import Condition, Container, Port, Probe, Resource, ShownPart, state_by

_LINE = re.compile(r"^(?P<indent> *)(?:- )?(?P<key>[A-Za-z](?:[^:\s]| (?! )){0,60}):(?P<value>(?: .*)?)$")
_PORT = re.compile(r"(?<![\w-])(?P<number>[a-z\d][\w-]{0,62})/(?P<protocol>TCP|UDP|SCTP)")
_TIMES = re.compile(r"(delay|timeout|period|#failure)=(\d{1,9})")
_PROBED = re.compile(r":([\w-]{1,63})(?=/|\s|$)")
_REPLICAS = re.compile(r"(?<!\d)(\d{1,9}) (desired|available|current|total)")
_AGE = re.compile(r"(?<![\w.-])(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?(?![\w.-])")
COLUMNS = re.compile(r"\s{2,}")
_NONE = ("<none>", "<unset>", "")
_KINDS: tuple[tuple[str, frozenset[str]], ...] = (
    ("Pod", frozenset({"Node", "Containers"})),
    ("Pod", frozenset({"Status", "Containers"})),
    ("Pod", frozenset({"Node", "Status"})),
    ("Job", frozenset({"Completions", "Pods Statuses"})),
    ("Autoscaler", frozenset({"Reference", "Min replicas"})),
    ("ReplicaSet", frozenset({"Pods Status", "Replicas", "Controlled By"})),
    ("Workload", frozenset({"Pod Template"})),
    ("Service", frozenset({"TargetPort"})),
    ("Service", frozenset({"External Name"})),
    ("Endpoints", frozenset({"Subsets"})),
    ("Node", frozenset({"Allocatable"})),
    ("Node", frozenset({"Taints", "Unschedulable"})),
    ("Volume", frozenset({"Reclaim Policy", "Capacity"})),
    ("Claim", frozenset({"Access Modes", "Volume"})),
    ("StorageClass", frozenset({"Provisioner"})),
    ("Account", frozenset({"Mountable secrets"})),
)
"""The kind of an object by its fields, since a description does not name it."""


@dataclass(slots=True)
class Field:
    """A field with the fields and the other lines below it."""

    key: str
    value: str
    indent: int
    below: list[Field] = field(default_factory=list["Field"])
    lines: list[str] = field(default_factory=list[str])

    def get(self, key: str) -> Field:
        return next((each for each in self.below if each.key == key), _EMPTY)

    @property
    def values(self) -> list[str]:
        """Return the value and the lines that continue it."""
        return [each for each in (self.value, *map(str.strip, self.lines)) if each not in _NONE]

    @property
    def pairs(self) -> Mapping[str, str]:
        parts = [one.partition("=") for each in self.values for one in each.split(",") if "=" in one]
        return {each.key: each.value for each in self.below} | {key: value for key, _, value in parts}


_EMPTY = Field("", "", 0)


def objects(lines: Iterable[str]) -> Iterator[tuple[Field, str]]:
    """Yield each described object with its text. An object begins with its name, at the left."""
    part: list[str] = []
    for line in lines:
        if line.startswith("Name:") and part:
            yield _tree(part), "\n".join(part)
            part = []
        if part or line.startswith("Name:"):
            part.append(line)
    if part:
        yield _tree(part), "\n".join(part)


def _tree(lines: Iterable[str]) -> Field:
    root = Field("", "", -1)
    path = [root]
    for line in lines:
        match = _LINE.match(line)
        indent = len(line) - len(line.lstrip())
        while len(path) > 1 and indent <= path[-1].indent:
            path.pop()
        if match is None:
            if line.strip():
                path[-1].lines.append(line)
            continue
        child = Field(match["key"], match["value"].strip(), indent)
        path[-1].below.append(child)
        path.append(child)
    return root


def kind_of(described: Field) -> str:
    """Return the kind of a described object; empty if it is none of those that are read, and has no conditions."""
    keys = frozenset(each.key for each in described.below)
    if any(
        line.split()[:3] == ["Resource", "Used", "Hard"]
        for each in (described, *described.below)
        for line in each.lines
    ):
        return "Quota"
    other = described.get("Kind").value if any(_conditions(described)) else ""
    return next((kind for kind, wanted in _KINDS if wanted <= keys), other)


def resource_of(described: Field, kind: str, shown: ShownPart) -> Resource:
    """Return a described object of a known kind."""
    template = described.get("Pod Template") if described.get("Pod Template").key else described
    containers = [_container(each, is_init=False) for each in template.get("Containers").below]
    containers += [_container(each, is_init=True) for each in template.get("Init Containers").below]
    replicas = {word: int(count) for count, word in _REPLICAS.findall(described.get("Replicas").value)}
    wanted = replicas.get("desired")
    ready = replicas.get("available", replicas.get("current", replicas.get("total")))
    states = [each.ready for each in containers if each.ready is not None]  # an init container is ready if it completed
    if kind == "Pod" and states:
        wanted, ready = len(states), states.count(True)
    conditions = tuple(_conditions(described))
    if kind == "Job" and not conditions:
        has_failed = " 0 Failed" not in described.get("Pods Statuses").value
        conditions = (Condition("Failed" if has_failed else "Complete", "True"),)
    volumes = described.get("Volumes") if described.get("Volumes").key else template.get("Volumes")
    is_name = described.get("Type").value == "ExternalName"  # without pods and ports
    return Resource(
        kind=kind,
        name=described.get("Name").value,
        namespace=described.get("Namespace").value,
        created=time_of(described.get("Start Time").value or described.get("CreationTimestamp").value),
        status=described.get("Status").value.partition(" ")[0] or state_by(conditions),
        reason=described.get("Reason").value,
        message=described.get("Message").value,
        conditions=conditions,
        wanted=wanted,
        ready=ready,
        restarts=sum(each.restarts or 0 for each in containers) if kind == "Pod" else None,
        owner=described.get("Controlled By").value or described.get("Used By").value.replace("<none>", ""),
        node=described.get("Node").value.partition("/")[0].replace("<none>", ""),
        labels=template.get("Labels").pairs,
        selector={} if is_name else pairs_of(described.get("Selector").value),
        containers=tuple(containers),
        node_selector=(described if kind == "Pod" else template).get("Node-Selectors").pairs,
        claims=tuple(each.get("ClaimName").value for each in volumes.below if each.get("ClaimName").value),
        address=described.get("IP").value.replace("None", "") if kind == "Service" else "",
        ports=_service_ports(described) if kind == "Service" and not is_name else (),
        endpoints=None if is_name else _addresses(described, kind),
        used=_column(described, 1) if kind == "Quota" else {},
        hard=_column(described, 2) if kind == "Quota" else {},
        capacity=described.get("Capacity").value,
        modes=tuple(filter(None, described.get("Access Modes").value.split(","))),
        storage_class=described.get("StorageClass").value if described.get("StorageClass").key else None,
        target=(
            described.get("Claim").value or described.get("Volume").value or described.get("Reference").value
        ).rpartition("/")[2],
        cordoned=described.get("Unschedulable").value == "true" if kind == "Node" else None,
        is_control=is_control(described.get("Roles").value, described.get("Labels").pairs) if kind == "Node" else None,
        shown=(shown,),
    )


def _conditions(described: Field) -> Iterator[Condition]:
    """Yield the conditions of an object: rows with a header, or fields that are sorted, so that the type ends each."""
    header: list[str] = []
    for line in described.get("Conditions").lines:
        row = COLUMNS.split(line.strip())
        header = row if row[:1] == ["Type"] else header
        cell = dict(zip(header, row, strict=False))
        if cell.get("Status") in ("True", "False", "Unknown"):
            at = time_of(cell.get("LastTransitionTime", ""))
            yield Condition(row[0], cell["Status"], cell.get("Reason", ""), cell.get("Message", ""), at)
    rows: dict[str, str] = {}
    for each in _below(described):
        rows[each.key] = each.value
        if each.key == "Type" and "Status" in rows:
            at = time_of(rows.get("Last Transition Time", ""))
            yield Condition(each.value, rows["Status"], rows.get("Reason", ""), rows.get("Message", ""), at)
            rows = {}


def _below(described: Field) -> Iterator[Field]:
    """Yield the fields of the conditions in the status of an object, at any depth."""
    for each in described.below:
        if each.key == "Conditions":
            yield from each.below
        elif described.key or each.key == "Status":
            yield from _below(each)


def is_control(roles: str, labels: Mapping[str, str]) -> bool:
    """Return whether a node is of the control plane, which takes no pods of users."""
    words = f"{roles} {' '.join(key.rpartition('/')[2] for key in labels)} {labels.get('kubernetes.io/role', '')}"
    return any(word in words.replace(",", " ").split() for word in ("master", "control-plane"))


def age_of(text: str) -> timedelta | None:
    """Return an age as Kubernetes writes it (“5m30s”); None if there is none."""
    match = next((each for each in _AGE.finditer(text) if each[0]), None)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return timedelta(days, seconds, minutes=minutes, hours=hours)


def time_of(text: str) -> datetime | None:
    """Return a time of a description (“Fri, 02 Jan 2026 12:32:50 +0800”) or of the API; None if it is none."""
    try:
        at = datetime.fromisoformat(text) if text[:1].isdigit() else parsedate_to_datetime(text)
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def pairs_of(text: str) -> dict[str, str]:
    return {key: value for part in text.split(",") if "=" in part for key, value in [part.strip().split("=", 1)]}


def _container(described: Field, *, is_init: bool) -> Container:
    probes = {
        each.key.lower(): probe
        for each in described.below
        if each.key in ("Liveness", "Readiness", "Startup") and (probe := _probe(each.value))
    }
    state, last = described.get("State"), described.get("Last State")
    over = state if state.value == "Terminated" else last
    ports = [described.get("Port").value, described.get("Ports").value]
    code, restarts = over.get("Exit Code").value, described.get("Restart Count").value
    is_read = bool(state.key)
    return Container(
        described.key,
        tuple(
            Port(each["number"], each["protocol"]) for each in _PORT.finditer(", ".join(ports)) if each["number"] != "0"
        ),
        described.get("Environment").pairs,
        probes,
        described.get("Limits").pairs,
        is_init,
        described.get("Ready").value == "True" if described.get("Ready").key else None,
        (state.get("Reason").value if state.value == "Waiting" else "") if is_read else None,
        (state.get("Reason").value if state.value == "Terminated" else "") if is_read else None,
        (state.get("Message").value or last.get("Message").value) if is_read else None,
        (over.get("Reason").value or ("Error" if code not in ("", "0") else "")) or None,
        int(code) if code.isdecimal() else None,
        time_of(over.get("Finished").value.removesuffix(" UTC")),
        int(restarts) if restarts.isdecimal() else None,
    )


def _probe(text: str) -> Probe | None:
    handler, _, rest = text.partition(" ")
    where, delayed, _ = rest.partition(" delay=")
    if not delayed:
        return None
    port, times = _PROBED.search(where.strip()), {name: int(count) for name, count in _TIMES.findall(rest)}
    usual = {"delay": 0, "timeout": 1, "period": 10, "#failure": 3} | times
    return Probe(handler, port[1] if port else "", *usual.values())


def _service_ports(described: Field) -> tuple[Port, ...]:
    ports: list[Port] = []
    for each in described.below:
        if (port := _PORT.search(each.value)) is None:
            continue
        if each.key == "Port":
            ports.append(Port(port["number"], port["protocol"], each.value.split()[0]))
        elif each.key == "TargetPort" and ports:
            ports[-1] = Port(ports[-1].number, ports[-1].protocol, ports[-1].name, port["number"])
    return tuple(ports)


def _addresses(described: Field, kind: str) -> tuple[str, ...] | None:
    if kind == "Service" and any(each.key == "Endpoints" for each in described.below):
        given = (part for each in described.below if each.key == "Endpoints" for part in each.value.split(","))
        return tuple(each.strip() for each in given if each.strip() not in _NONE)
    if kind == "Endpoints":
        given = described.get("Subsets").get("Addresses").value.split(",")
        return tuple(each for each in given if each not in _NONE)
    return None


def _column(described: Field, place: int) -> dict[str, str]:
    rows = [line.split() for each in (described, *described.below) for line in each.lines]
    return {row[0]: row[place] for row in rows if len(row) == 3 and row[1][:1].isdigit()}
