"""Read a cluster from the outputs of tools: descriptions, tables, manifests, events, states of daemons, and alerts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from core.model.terminal_text import without_control
from core.rca.cluster.described import kind_of, objects, thing_of
from core.rca.cluster.manifests import is_manifest, things
from core.rca.cluster.state import Cluster, Complaint, Daemon, Event, ShownPart, Thing, app_of, is_of_node
from core.rca.tool_outputs.clues import ToolOutput

MAX_READ = 400_000  # characters of an output
MAX_RECORDS = 2_000  # of a JSON document
_COLUMNS = re.compile(r"\s{2,}")
_EVENT = re.compile(r"(?:^|\s)(?P<type>Normal|Warning)\s+(?P<reason>[A-Z]\w+)\s+(?P<rest>\S.*)$")
_OBJECT = re.compile(r"^(?P<kind>[A-Za-z][\w.]*)/(?P<name>[\w.-]+)$")
_AGE = re.compile(r"(?<![\w.-])(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?(?![\w.-])")
_HEADER = re.compile(r"^(?:NAMESPACE +)?NAME +[A-Z]|^LAST SEEN ", re.MULTILINE)
_DAEMON = re.compile(r"^\W{0,40}(?:Status: \W{0,4})?(?P<name>[\w@-]{1,80})\.service\b")
_JOURNAL = re.compile(r"\w{3} +\d{1,2} [\d:]{8} (?P<node>[\w.-]{1,253}) ")
_EVENT_KINDS = {
    "pod": "Pod", "replicaset": "ReplicaSet", "persistentvolumeclaim": "Claim", "node": "Node",
    "deployment": "Workload", "statefulset": "Workload", "daemonset": "Workload",
}  # fmt: skip
_TABLES: tuple[tuple[str, frozenset[str]], ...] = (
    ("Pod", frozenset({"READY", "STATUS", "RESTARTS"})),
    ("Service", frozenset({"CLUSTER-IP", "PORT(S)"})),
    ("Endpoints", frozenset({"ENDPOINTS"})),
    ("ReplicaSet", frozenset({"DESIRED", "CURRENT", "READY"})),
    ("Workload", frozenset({"READY", "UP-TO-DATE"})),
    ("Workload", frozenset({"NAME", "READY"})),
    ("Node", frozenset({"STATUS", "ROLES"})),
    ("Claim", frozenset({"STATUS", "VOLUME", "CAPACITY"})),
    ("Volume", frozenset({"RECLAIM POLICY", "CAPACITY"})),
    ("StorageClass", frozenset({"PROVISIONER"})),
    ("Quota", frozenset({"REQUEST", "LIMIT"})),
    ("Account", frozenset({"NAME", "SECRETS"})),
)
_STARTS = re.compile(r"(?:(?<=\s\s)|^)\S")
_SHARE = re.compile(r"(?<![\w./-])([\w./-]{1,60}): ([\w.]{1,30})/([\w.]{1,30})")
_NAMES = ("pod", "service", "deployment", "workload", "app", "container", "node", "instance", "name")
_TELLS = ("evidence", "message", "summary", "description", "annotations", "value", "reason", "alertname")


def read(outputs: Iterable[ToolOutput]) -> Cluster:
    """Return what outputs show of a cluster, later ones adding to earlier ones."""
    cluster = Cluster()
    applied: list[Thing] = []
    seen = set[str]()
    for output in outputs:
        if not (output.failed or output.is_document):
            applied += _add(cluster, output, seen)
    cluster.apply(applied)
    return cluster


def _add(cluster: Cluster, output: ToolOutput, seen: set[str]) -> list[Thing]:
    """Add what an output shows, and return the objects that somebody applied, as far as it tells of these."""
    text = without_control(output.text[:MAX_READ])
    lines = text.splitlines()
    described = list(objects(lines))
    for fields, part in described:
        kind = kind_of(fields)
        if kind:
            cluster.add(thing_of(fields, kind, ShownPart(output.source, part)))
        _add_events(cluster, part.splitlines(), kind, fields.get("Name").value, output.source)
    if described:
        return []
    if is_manifest(text):
        given = list(things(text, output.source, seen))
        for thing, is_live in given:
            if is_live:
                cluster.add(thing)
        return [thing for thing, is_live in given if not is_live]
    is_table = _HEADER.search(text) is not None
    for thing in _rows(lines, output.source) if is_table else ():
        cluster.add(thing)
    _add_events(cluster, lines, "", output.subject, output.source)
    daemons = list(_daemons(lines, output))
    cluster.daemons += daemons
    if text.lstrip()[:1] in ("{", "["):
        cluster.measured += _records(text, output.source)
    if output.subject and not is_table and not daemons:
        cluster.said += (Complaint("app", app_of(output.subject), line, output.source) for line in lines)
    return []


def _daemons(lines: Sequence[str], output: ToolOutput) -> Iterator[Daemon]:
    """Yield what `systemctl status` says of daemons, on the node that the tool was asked about or whose journal follows."""
    node = next((value for key, value in output.arguments.items() if "node" in key or "host" in key), "")
    node = node or next((match["node"] for line in lines if (match := _JOURNAL.match(line))), "")
    name = ""
    for line in lines:
        if match := _DAEMON.match(line):
            name = match["name"]
        words = line.split()
        if name and words[:1] == ["Active:"]:
            yield Daemon(name, node, words[1] if len(words) > 1 else "", line.strip(), output.source)
            name = ""


def _add_events(cluster: Cluster, lines: Sequence[str], kind: str, name: str, source: str) -> None:
    for line in lines:
        if row := _EVENT.search(line):
            columns = _COLUMNS.split(row["rest"].strip())
            about = next((match for each in columns if (match := _OBJECT.match(each))), None)
            of_kind = _EVENT_KINDS.get(about["kind"].lower(), about["kind"]) if about else kind
            of_name = about["name"] if about else name
            cluster.events.append(Event(row["reason"], of_kind, of_name, columns[-1], ShownPart(source, line.strip())))


def age_of(text: str) -> float | None:
    """Return an age as Kubernetes writes it (“5m30s”) in seconds; None if it is none."""
    match = next((each for each in _AGE.finditer(text) if each[0]), None)
    return (
        sum(int(part or 0) * unit for part, unit in zip(match.groups(), (86_400, 3_600, 60, 1), strict=True))
        if match
        else None
    )


def _rows(lines: Sequence[str], source: str) -> Iterator[Thing]:
    """Yield the objects in the rows of tables. A header begins a new one."""
    spans: list[tuple[str, int, int]] = []
    kind = ""
    for line in lines:
        if _HEADER.match(line):
            starts = [column.start() for column in _STARTS.finditer(line)]
            spans = [(line[a:b].strip(), a, b) for a, b in zip(starts, [*starts[1:], 10_000], strict=True)]
            names = frozenset(name for name, _, _ in spans)
            kind = next((kind for kind, wanted in _TABLES if wanted <= names), "")
        elif kind and line.strip() and not line.startswith("No resources"):
            yield from _row({name: line[a:b].strip() for name, a, b in spans}, kind, ShownPart(source, line))


def _row(cell: Mapping[str, str], kind: str, shown: ShownPart) -> Iterator[Thing]:
    name = cell.get("NAME", "").rpartition("/")[2]
    if not name or " " in name:
        return
    counted = [int(part) for part in cell.get("READY", "").split("/") if part.isdecimal()]
    ready, wanted = counted if len(counted) == 2 else (counted[0] if counted else None, None)
    if kind == "ReplicaSet" and cell["DESIRED"].isdecimal():
        wanted = int(cell["DESIRED"])
    restarts = cell.get("RESTARTS", "").partition(" ")
    shares = {
        key: (used, hard) for key, used, hard in _SHARE.findall(f"{cell.get('REQUEST', '')} {cell.get('LIMIT', '')}")
    }
    endpoints = cell.get("ENDPOINTS", "").removesuffix("...")
    status = cell.get("STATUS", "")
    yield Thing(
        kind=kind,
        name=name,
        namespace=cell.get("NAMESPACE", ""),
        status=status.partition(",")[0],
        wanted=wanted,
        ready=ready,
        restarts=int(restarts[0]) if restarts[0].isdecimal() else None,
        restarted=age_of(restarts[2].strip("()").removesuffix(" ago")) if restarts[2] else None,
        node=cell.get("NODE", "").replace("<none>", ""),
        endpoints=None
        if kind != "Endpoints"
        else tuple(each.strip() for each in endpoints.split(",") if each.strip() not in ("", "<none>")),
        used={key: used for key, (used, _) in shares.items()},
        hard={key: hard for key, (_, hard) in shares.items()},
        capacity=cell.get("CAPACITY", ""),
        modes=tuple(filter(None, cell.get("ACCESS MODES", "").split(","))),
        storage_class=cell.get("STORAGECLASS"),
        target=(cell.get("CLAIM") or cell.get("VOLUME", "")).rpartition("/")[2],
        cordoned="SchedulingDisabled" in status,
        is_control=any(role in ("master", "control-plane") for role in cell.get("ROLES", "").split(",")),
        shown=(shown,),
    )


def _records(text: str, source: str) -> Iterator[Complaint]:
    """Yield what the records of a JSON document tell about things that they name."""
    try:
        pending: list[object] = [json.loads(text)]
    except (ValueError, RecursionError):
        return
    for _ in range(MAX_RECORDS):
        if not pending:
            return
        each = pending.pop(0)
        if isinstance(each, list):
            pending += cast("list[object]", each)
        elif isinstance(each, dict):
            record = {str(key).lower(): value for key, value in cast("dict[object, object]", each).items()}
            named = [(key, value) for key in _NAMES if isinstance(value := record.get(key), str) and value]
            lines = [line for key in _TELLS for line in _leaves(record.get(key))]
            if named and lines:
                kind = str(record.get("type") or record.get("kind") or named[0][0]).lower()
                name = app_of(named[0][1]) if not is_of_node(kind) else named[0][1]
                yield from (Complaint(kind, name, line, source) for line in lines)
            else:
                pending += record.values()


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (each for each in cast("list[object]", value) if isinstance(each, str))
    elif isinstance(value, dict):
        yield from (each for each in cast("dict[object, object]", value).values() if isinstance(each, str))
