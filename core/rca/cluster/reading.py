"""Read a cluster from the outputs of tools: descriptions, tables, manifests, events, states of daemons, checks and alerts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import cast

from core.model.text import load_json
from core.rca.cluster.described import COLUMNS, age_of, kind_of, objects, pairs_of, time_of
from core.rca.cluster.described import resource_of as described_resource
from core.rca.cluster.manifests import KINDS, event_of, given_objects, is_live, is_manifest
from core.rca.cluster.manifests import resource_of as given_resource
from core.rca.cluster.state import (
    Cluster,
    Complaint,
    Condition,
    Daemon,
    Event,
    Resource,
    ShownPart,
    app_of,
    is_of_node,
)
from core.rca.failures import UNANSWERED, kinds_of
from core.rca.tool_outputs import DAEMON, EVENT, HEADER, OutputBlock, OutputForm, ToolOutput, blocks, is_check

MAX_RECORDS = 2_000  # of a JSON document
_OBJECT = re.compile(r"^(?P<kind>[A-Za-z][\w.]*)/(?P<name>[\w.-]+)$")
_JOURNAL = re.compile(r"\w{3} +\d{1,2} [\d:]{8} (?P<node>[\w.-]{1,253}) ")
_EVENT_KINDS = {kind.lower(): kind_read for kind, kind_read in KINDS.items()}
_TABLES: tuple[tuple[str, frozenset[str]], ...] = (
    ("Pod", frozenset({"READY", "STATUS", "RESTARTS"})),
    ("Service", frozenset({"CLUSTER-IP", "PORT(S)"})),
    ("Endpoints", frozenset({"ENDPOINTS"})),
    ("Autoscaler", frozenset({"REFERENCE", "MINPODS"})),
    ("Autoscaler", frozenset({"SCALETARGETNAME"})),
    ("Workload", frozenset({"DESIRED", "CURRENT", "READY", "UP-TO-DATE"})),
    ("Workload", frozenset({"DESIRED", "CURRENT", "UP-TO-DATE", "AVAILABLE"})),
    ("ReplicaSet", frozenset({"DESIRED", "CURRENT", "READY"})),
    ("Workload", frozenset({"READY", "UP-TO-DATE"})),
    ("Workload", frozenset({"NAME", "READY"})),
    ("Node", frozenset({"STATUS", "ROLES"})),
    ("Claim", frozenset({"STATUS", "VOLUME", "CAPACITY"})),
    ("Volume", frozenset({"RECLAIM POLICY", "CAPACITY"})),
    ("StorageClass", frozenset({"PROVISIONER"})),
    ("Quota", frozenset({"REQUEST", "LIMIT"})),
    ("Job", frozenset({"COMPLETIONS", "DURATION"})),
    ("Account", frozenset({"NAME", "SECRETS"})),
)
_STARTS = re.compile(r"(?:(?<=\s\s)|^)\S")
_TARGET = re.compile(r"(\d{1,6})%/(\d{1,6})%")
_SHARE = re.compile(r"(?<![\w./-])([\w./-]{1,60}): ([\w.]{1,30})/([\w.]{1,30})")
_NAMES = ("pod", "service", "deployment", "workload", "app", "container", "node", "instance", "name")
_TELLS = ("evidence", "message", "summary", "description", "annotations", "value", "reason", "alertname")
_MOVED = re.compile(r"\d[^\n]{0,20} -> ?[^\n]{0,20}\d")  # a value before and now
_FINE = frozenset("ok normal resolved success healthy info inactive passed up".split())


def read(outputs: Iterable[ToolOutput], now: datetime) -> Cluster:
    """Return what outputs show of a cluster as of `now`, later ones adding to earlier ones."""
    cluster = Cluster(now)
    applied: list[Resource] = []
    seen = set[str]()
    for output in outputs:
        if not (output.failed or output.is_document):
            for block in blocks(output):
                applied += _add(cluster, block, seen)
    cluster.apply(applied)
    return cluster


def _add(cluster: Cluster, block: OutputBlock, seen: set[str]) -> list[Resource]:
    """Add what a block shows, and return the objects that somebody applied, as far as it tells of these."""
    source = block.output.source
    if block.kind is OutputForm.MANIFEST and is_manifest(block.text):
        return _add_manifests(cluster, block, seen)
    if block.kind is OutputForm.DESCRIPTION:
        for fields, part in objects(block.lines):
            kind = kind_of(fields)
            if kind:
                cluster.add(described_resource(fields, kind, ShownPart(source, part)))
            _add_events(cluster, part.splitlines(), kind, fields.get("Name").value, source)
        return []
    if block.kind is OutputForm.TABLE:
        for resource in _rows(block.lines, source, cluster.now):
            cluster.add(resource)
    _add_events(cluster, block.lines, "", block.output.subject, source)
    cluster.daemons += _daemons(block.lines, block.output)
    cluster.measured += _reports(block.text, source) if block.kind is OutputForm.MANIFEST else ()
    failed = [line for line in block.lines if kinds_of(line, UNANSWERED)] if is_check(block.output) else []
    cluster.refusals += (Complaint("check", block.output.subject, line, source) for line in failed[:1])
    return []


def _add_manifests(cluster: Cluster, block: OutputBlock, seen: set[str]) -> list[Resource]:
    applied: list[Resource] = []
    for given, text in given_objects(block.text, seen):
        shown = ShownPart(block.output.source, text)
        if (event := event_of(given, shown)) is not None:
            cluster.events.append(event)
        elif (resource := given_resource(given, shown)) is not None:
            if is_live(given):
                cluster.add(resource)
            else:
                applied.append(resource)
    return applied


def _daemons(lines: Sequence[str], output: ToolOutput) -> Iterator[Daemon]:
    """Yield what `systemctl status` says of daemons, on the node that the tool was asked about or whose journal follows."""
    node = next((value for key, value in output.arguments.items() if "node" in key or "host" in key), "")
    node = node or next((match["node"] for line in lines if (match := _JOURNAL.match(line))), "")
    name = ""
    for line in lines:
        if match := DAEMON.match(line):
            name = match["name"]
        words = line.split()
        if name and words[:1] == ["Active:"]:
            yield Daemon(name, node, words[1] if len(words) > 1 else "", line.strip(), output.source)
            name = ""


def _add_events(cluster: Cluster, lines: Sequence[str], kind: str, name: str, source: str) -> None:
    for line in lines:
        if row := EVENT.search(line):
            columns = COLUMNS.split(row["rest"].strip())
            about = next((match for each in columns if (match := _OBJECT.match(each))), None)
            of_kind = _EVENT_KINDS.get(about["kind"].lower(), about["kind"]) if about else kind
            of_name = about["name"] if about else name
            at = time_of(row["seen"].strip().removesuffix(" UTC")) if row["seen"].strip() else None
            seen = age_of(row["seen"].strip() or columns[0])
            at = at or (cluster.now - seen if seen is not None else None)
            shown = ShownPart(source, line.strip())
            cluster.events.append(
                Event(row["reason"], of_kind, of_name, columns[-1], shown, at, row["type"] == "Warning")
            )


def _rows(lines: Sequence[str], source: str, now: datetime) -> Iterator[Resource]:
    """Yield the objects in the rows of tables. A header begins a new one."""
    spans: list[tuple[str, int, int]] = []
    kind = ""
    for line in lines:
        if HEADER.match(line):
            starts = [column.start() for column in _STARTS.finditer(line)]
            spans = [(line[a:b].strip(), a, b) for a, b in zip(starts, [*starts[1:], 10_000], strict=True)]
            names = frozenset(name for name, _, _ in spans)
            kind = next((kind for kind, wanted in _TABLES if wanted <= names), "")
        elif kind and line.strip() and not line.startswith("No resources"):
            yield from _row({name: line[a:b].strip() for name, a, b in spans}, kind, ShownPart(source, line), now)


def _row(cell: Mapping[str, str], kind: str, shown: ShownPart, now: datetime) -> Iterator[Resource]:
    name = cell.get("NAME", "").rpartition("/")[2]
    if not name or " " in name:
        return
    counted = [int(part) for part in cell.get("READY", cell.get("AVAILABLE", "")).split("/") if part.isdecimal()]
    ready, wanted = counted if len(counted) == 2 else (counted[0] if counted else None, None)
    if cell.get("DESIRED", "").isdecimal():
        wanted = int(cell["DESIRED"])
    restarts = cell.get("RESTARTS", "").partition(" ")
    shares = {
        key: (used, hard) for key, used, hard in _SHARE.findall(f"{cell.get('REQUEST', '')} {cell.get('LIMIT', '')}")
    }
    endpoints = cell.get("ENDPOINTS", "").partition(" + ")[0].removesuffix("...")
    status, conditions = cell.get("STATUS", ""), tuple[Condition, ...]()
    if kind == "Autoscaler" and cell.get("MAXPODS", "").isdecimal():
        wanted = int(cell["MAXPODS"])
        is_over = any(int(used) > int(target) for used, target in _TARGET.findall(cell.get("TARGETS", "")))
        is_limited = is_over and cell.get("REPLICAS") == cell["MAXPODS"]
        conditions = (Condition("ScalingLimited", str(is_limited), "TooManyReplicas"),)
    age, since = (
        age_of(cell.get("AGE", "")),
        age_of(restarts[2].strip("()").removesuffix(" ago")) if restarts[2] else None,
    )
    yield Resource(
        kind=kind,
        name=name,
        namespace=cell.get("NAMESPACE", ""),
        created=now - age if age is not None else None,
        status=status.partition(",")[0],
        conditions=conditions,
        wanted=wanted,
        ready=ready,
        restarts=int(restarts[0]) if restarts[0].isdecimal() else None,
        restarted=now - since if since is not None else None,
        node=cell.get("NODE", "").replace("<none>", "") if kind == "Pod" else "",
        labels=pairs_of(cell.get("LABELS", "")) if kind == "Pod" else {},
        selector=pairs_of(cell.get("SELECTOR", "")) if kind == "Service" else {},
        address=cell.get("CLUSTER-IP", "").replace("None", ""),
        endpoints=None
        if kind != "Endpoints"
        else tuple(each.strip() for each in endpoints.split(",") if each.strip() not in ("", "<none>")),
        used={key: used for key, (used, _) in shares.items()},
        hard={key: hard for key, (_, hard) in shares.items()},
        capacity=cell.get("CAPACITY", ""),
        modes=tuple(filter(None, cell.get("ACCESS MODES", "").split(","))),
        storage_class=cell.get("STORAGECLASS"),
        target=(
            cell.get("CLAIM") or cell.get("VOLUME") or cell.get("REFERENCE") or cell.get("SCALETARGETNAME", "")
        ).rpartition("/")[2],
        cordoned="SchedulingDisabled" in status if kind == "Node" else None,
        is_control=any(role in ("master", "control-plane") for role in cell.get("ROLES", "").split(","))
        if kind == "Node"
        else None,
        shown=(shown,),
    )


def _reports(text: str, source: str) -> Iterator[Complaint]:
    """Yield what the records of a monitoring system report about things that they name, unless they say that all is well."""
    try:
        pending: list[object] = [load_json(text)]
    except ValueError:
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
            states = {str(record.get(key, "")).lower() for key in ("status", "state", "level", "severity")}
            lines = [line for key in _TELLS for line in _leaves(record.get(key))]
            is_report = bool(record.keys() & {"evidence", "alertname", "annotations"}) or any(map(_MOVED.search, lines))
            if not (named and lines and is_report):
                pending += record.values()
            elif not states & _FINE:
                kind = str(record.get("type") or record.get("kind") or named[0][0]).lower()
                name = app_of(named[0][1]) if not is_of_node(kind) else named[0][1]
                yield from (Complaint(kind, name, line, source) for line in lines)


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (each for each in cast("list[object]", value) if isinstance(each, str))
    elif isinstance(value, dict):
        yield from (each for each in cast("dict[object, object]", value).values() if isinstance(each, str))
