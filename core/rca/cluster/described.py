"""Read objects from the text of `kubectl describe`, whose fields are nested by indentation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from core.rca.cluster.state import Container, Port, Probe, ShownPart, Thing

_LINE = re.compile(r"^(?P<indent> *)(?:- )?(?P<key>[A-Za-z](?:[^:\s]| (?! )){0,60}):(?P<value>(?: .*)?)$")
_PORT = re.compile(r"(?<![\w-])(?P<number>[a-z\d][\w-]{0,62})/(?P<protocol>TCP|UDP|SCTP)")
_TIMES = re.compile(r"(delay|timeout|period|#failure)=(\d{1,9})")
_PROBED = re.compile(r":([\w-]{1,63})(?=/|\s|$)")
_REPLICAS = re.compile(r"(?<!\d)(\d{1,9}) (desired|available|current|total)")
_NONE = ("<none>", "<unset>", "")
_KINDS: tuple[tuple[str, frozenset[str]], ...] = (
    ("Pod", frozenset({"Node", "Containers"})),
    ("Pod", frozenset({"Status", "Containers"})),
    ("ReplicaSet", frozenset({"Pods Status", "Replicas", "Controlled By"})),
    ("Workload", frozenset({"Pod Template"})),
    ("Service", frozenset({"TargetPort"})),
    ("Endpoints", frozenset({"Subsets"})),
    ("Node", frozenset({"Allocatable"})),
    ("Volume", frozenset({"Reclaim Policy", "Capacity"})),
    ("Claim", frozenset({"Access Modes", "Used By"})),
    ("Claim", frozenset({"Access Modes", "Mounted By"})),
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
        parts = [each.partition("=") for each in self.values if "=" in each]
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
    """Return the kind of a described object; empty if it is none of those that are read."""
    keys = frozenset(each.key for each in described.below)
    if any(
        line.split()[:3] == ["Resource", "Used", "Hard"]
        for each in (described, *described.below)
        for line in each.lines
    ):
        return "Quota"
    return next((kind for kind, wanted in _KINDS if wanted <= keys), "")


def thing_of(described: Field, kind: str, shown: ShownPart) -> Thing:
    """Return a described object of a known kind."""
    template = described.get("Pod Template") if described.get("Pod Template").key else described
    containers = tuple(_container(each) for each in template.get("Containers").below)
    replicas = {word: int(count) for count, word in _REPLICAS.findall(described.get("Replicas").value)}
    wanted = replicas.get("desired")
    ready = replicas.get("available", replicas.get("current", replicas.get("total")))
    sections = [described.get("Containers"), described.get("Init Containers")]  # also of sidecars; ready if completed
    states = [each.get("Ready").value for one in sections for each in one.below if each.get("Ready").key]
    if kind == "Pod" and states:
        wanted, ready = len(states), states.count("True")
    condition = {each.split()[0]: each.split() for each in described.get("Conditions").lines if each.split()}
    status = described.get("Status").value
    if kind == "Node" and (ready_words := condition.get("Ready")):
        status = "Ready" if ready_words[1] == "True" else "NotReady"
    unmet = next((each for each in described.get("Conditions").lines if _is_unmet(each)), "")
    volumes = described.get("Volumes") if described.get("Volumes").key else template.get("Volumes")
    modes = described.get("Access Modes").value
    is_name = described.get("Type").value == "ExternalName"  # without pods and ports
    return Thing(
        kind=kind,
        name=described.get("Name").value,
        namespace=described.get("Namespace").value,
        status=status.split()[0] if status else "",
        wanted=wanted,
        ready=ready,
        restarts=sum(each.restarts or 0 for each in containers) if states else None,
        owner=described.get("Controlled By").value or described.get("Used By").value.replace("<none>", ""),
        node=described.get("Node").value.partition("/")[0].replace("<none>", ""),
        labels=template.get("Labels").pairs,
        selector={} if is_name else _selector(described.get("Selector").value),
        containers=containers,
        node_selector=(described if kind == "Pod" else template).get("Node-Selectors").pairs,
        claims=tuple(each.get("ClaimName").value for each in volumes.below if each.get("ClaimName").value),
        ports=_service_ports(described) if kind == "Service" and not is_name else (),
        endpoints=None if is_name else _addresses(described, kind),
        used=_column(described, 1) if kind == "Quota" else {},
        hard=_column(described, 2) if kind == "Quota" else {},
        capacity=described.get("Capacity").value,
        modes=tuple(filter(None, modes.split(","))),
        storage_class=described.get("StorageClass").value if described.get("StorageClass").key else None,
        target=(described.get("Claim").value or described.get("Volume").value).rpartition("/")[2],
        cordoned=described.get("Unschedulable").value == "true",
        is_control=kind == "Node" and is_control(described.get("Roles").value, described.get("Labels").pairs),
        why=" ".join(unmet.split()[10:]) if kind == "Node" else "",
        shown=(shown,),
    )


def is_control(roles: str, labels: Mapping[str, str]) -> bool:
    """Return whether a node is of the control plane, which takes no pods of users."""
    words = f"{roles} {' '.join(key.rpartition('/')[2] for key in labels)} {labels.get('kubernetes.io/role', '')}"
    return any(word in words.replace(",", " ").split() for word in ("master", "control-plane"))


def _is_unmet(line: str) -> bool:
    columns = line.split()
    return (
        len(columns) > 1
        and (columns[0] == "Ready") is (columns[1] != "True")
        and columns[1] in ("True", "False", "Unknown")
    )


def _selector(text: str) -> dict[str, str]:
    return {key: value for part in text.split(",") if "=" in part for key, value in [part.strip().split("=", 1)]}


def _container(described: Field) -> Container:
    probes = {
        each.key.lower(): probe
        for each in described.below
        if each.key in ("Liveness", "Readiness", "Startup") and (probe := _probe(each.value))
    }
    state, last = described.get("State"), described.get("Last State")
    ports = [described.get("Port").value, described.get("Ports").value]
    return Container(
        described.key,
        tuple(
            Port(each["number"], each["protocol"]) for each in _PORT.finditer(", ".join(ports)) if each["number"] != "0"
        ),
        described.get("Environment").pairs,
        probes,
        described.get("Limits").pairs,
        state.get("Reason").value,
        last.get("Reason").value,
        int(described.get("Restart Count").value) if described.get("Restart Count").value.isdecimal() else None,
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
    if kind == "Service" and (given := described.get("Endpoints")).key:
        return tuple(each.strip() for each in given.value.split(",") if each.strip() not in _NONE)
    if kind == "Endpoints":
        given = described.get("Subsets").get("Addresses").value
        return tuple(each for each in given.split(",") if each not in _NONE)
    return None


def _column(described: Field, place: int) -> dict[str, str]:
    rows = [line.split() for each in (described, *described.below) for line in each.lines]
    return {row[0]: row[place] for row in rows if len(row) == 3 and row[1][:1].isdigit()}
