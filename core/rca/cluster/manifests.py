"""Read objects and events from manifests, in YAML or JSON, as the API of Kubernetes gives them or as somebody applied them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, cast

import yaml

from core.model.text import load_json, refuse_deep_yaml
from core.rca.cluster.described import is_control, time_of
from core.rca.cluster.state import Condition, Container, Event, Port, Probe, Resource, ShownPart, state_by

MAX_MANIFEST = 400_000  # characters
_IS_MANIFEST = re.compile(r"^[ {\[]*[\"']?(?:apiVersion|kind)[\"']?:", re.MULTILINE)
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
KINDS = {
    "Pod": "Pod", "ReplicaSet": "ReplicaSet", "Service": "Service", "Endpoints": "Endpoints", "Node": "Node",
    "ResourceQuota": "Quota", "PersistentVolumeClaim": "Claim", "PersistentVolume": "Volume",
    "StorageClass": "StorageClass", "ServiceAccount": "Account", "Job": "Job",
} | dict.fromkeys(("Deployment", "StatefulSet", "DaemonSet", "Rollout"), "Workload") | dict.fromkeys(
    ("HorizontalPodAutoscaler", "ScaledObject"), "Autoscaler"
)  # fmt: skip
_HANDLERS = {"httpGet": "http-get", "grpc": "grpc", "tcpSocket": "tcp-socket", "exec": "exec"}
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def is_manifest(text: str) -> bool:
    return _IS_MANIFEST.search(text[:MAX_MANIFEST]) is not None


def given_objects(text: str, seen: set[str]) -> Iterator[tuple[Mapping[str, object], str]]:
    """Yield the objects of all documents of a text, with the part that shows each.

    `seen` are the documents that other outputs had already.
    """
    for part in text[:MAX_MANIFEST].split("\n---"):
        if part in seen:
            continue
        seen.add(part)
        try:
            if part.lstrip()[:1] in "{[":
                document: object = load_json(part.encode())
            else:
                refuse_deep_yaml(part)
                document = _Loader(part).get_single_data()
        except (yaml.YAMLError, RecursionError, ValueError):
            continue
        items = _list(_at(document, "items"))
        for each in items or (_list(document) or [document]):
            shown = part if not items else yaml.safe_dump(_shown(each), sort_keys=False, allow_unicode=True)
            yield _mapping(each), shown


def resource_of(given: Mapping[str, object], shown: ShownPart) -> Resource | None:
    """Return an object with a name, of a kind that is read or with conditions; None for others."""
    kind = _text(given.get("kind"))
    kind = KINDS.get(kind, kind if any(_conditions(_at(given, "status"))) else "")
    return _resource(given, kind, shown) if kind and _text(_at(given, "metadata", "name")) else None


def is_live(given: Mapping[str, object]) -> bool:
    """Return whether an object is the API's, and not only what somebody applied."""
    return bool(_at(given, "status") or _at(given, "metadata", "uid"))


def event_of(given: Mapping[str, object], shown: ShownPart) -> Event | None:
    """Return the event of a manifest; None if it is another object."""
    if given.get("kind") != "Event":
        return None
    about = given.get("involvedObject") or given.get("regarding")
    times = (_at(given, "series", "lastObservedTime"), given.get("lastTimestamp"), given.get("eventTime"))
    kind = _text(_at(about, "kind"))
    message = " ".join(_text(given.get("message") or given.get("note")).split())
    reason, at = _text(given.get("reason")), next((at for each in times if (at := time_of(_text(each)))), None)
    line = f"{given.get('type')}  {reason}  {kind.lower()}/{_text(_at(about, 'name'))}  {message}"
    return Event(
        reason, KINDS.get(kind, kind), _text(_at(about, "name")), message, ShownPart(shown.source, line), at,
        given.get("type") != "Normal",
    )  # fmt: skip


def _resource(given: Mapping[str, object], kind: str, shown: ShownPart) -> Resource:
    spec, status, metadata = _at(given, "spec"), _at(given, "status"), _at(given, "metadata")
    template = _at(spec, "template", "spec") or spec
    is_claim = kind == "Claim"
    states = [*_list(_at(status, "containerStatuses")), *_list(_at(status, "initContainerStatuses"))]
    routes = kind == "Service" and _at(spec, "type") != "ExternalName"  # which is a name, without pods and ports
    wanted = len(states) if states else _number(_at(spec, "replicas") if kind != "Pod" else None)
    ready = sum(_at(each, "ready") is True for each in states) if states else _number(_at(status, "readyReplicas"))
    if given.get("kind") == "DaemonSet":
        wanted, ready = _number(_at(status, "desiredNumberScheduled")), _number(_at(status, "numberReady"))
    if kind == "Workload" and status and ready is None:
        ready = 0
    conditions = tuple(_conditions(status))
    if kind == "Autoscaler":
        wanted = _number(_at(spec, "maxReplicas"))
    selector = _at(spec, "selector", "matchLabels") or (_at(spec, "selector") if routes or kind == "Claim" else None)
    owner = next(iter(_list(_at(metadata, "ownerReferences"))), None)
    subsets = _list(_at(given, "subsets"))
    waits = [(each, False) for each in _list(_at(template, "containers"))]
    return Resource(
        kind=kind,
        name=_text(_at(metadata, "name")),
        namespace=_text(_at(metadata, "namespace")),
        created=time_of(_text(_at(metadata, "creationTimestamp"))),
        status=_text(_at(status, "phase")) or state_by(conditions),
        reason=_text(_at(status, "reason")),
        message=_text(_at(status, "message")),
        conditions=conditions,
        wanted=wanted,
        ready=ready,
        restarts=sum(_number(_at(each, "restartCount")) or 0 for each in states) if states else None,
        owner=f"{_text(_at(owner, 'kind'))}/{_text(_at(owner, 'name'))}" if owner else "",
        node=_text(_at(spec, "nodeName")),
        labels=_texts(_at(spec, "template", "metadata", "labels") or _at(metadata, "labels")),
        selector=_texts(selector),
        containers=tuple(
            _container(each, states, is_init=is_init)
            for each, is_init in (*waits, *((one, True) for one in _list(_at(template, "initContainers"))))
        ),
        node_selector=_texts(_at(template, "nodeSelector")),
        claims=tuple(
            name
            for each in _list(_at(template, "volumes"))
            if (name := _text(_at(each, "persistentVolumeClaim", "claimName")))
        ),
        address=_text(_at(spec, "clusterIP")).replace("None", "") if kind == "Service" else "",
        ports=tuple(_port(each, kind) for each in _list(_at(spec, "ports"))) if routes else (),
        endpoints=tuple(
            f"{_text(_at(each, 'ip'))}:{_text(_at(port, 'port'))}"
            for one in subsets
            for port in _list(_at(one, "ports"))
            for each in _list(_at(one, "addresses"))
        )
        if kind == "Endpoints"
        else None,
        hard=_texts(_at(status, "hard") or _at(spec, "hard")) if kind == "Quota" else {},
        used=_texts(_at(status, "used")) if kind == "Quota" else {},
        capacity=_text(_at(spec, "resources", "requests", "storage") if is_claim else _at(spec, "capacity", "storage")),
        modes=tuple(_MODES.get(_text(each), _text(each)) for each in _list(_at(spec, "accessModes"))),
        storage_class=_text(_at(spec, "storageClassName")) if "storageClassName" in _mapping(spec) else None,
        target=_text(
            _at(spec, "scaleTargetRef", "name")
            or (_at(spec, "volumeName") if is_claim else _at(spec, "claimRef", "name"))
            or next(_references(spec), "")
        ),
        cordoned=_at(spec, "unschedulable") is True if kind == "Node" else None,
        is_control=is_control("", _texts(_at(metadata, "labels"))) if kind == "Node" else None,
        shown=(shown,),
    )


def _conditions(status: object) -> Iterator[Condition]:
    """Yield the conditions of an object, and of the parents, listeners or ancestors that its status names."""
    for each in _list(_at(status, "conditions")):
        texts = _texts(each)
        at = time_of(texts.get("lastTransitionTime", ""))
        yield Condition(
            texts.get("type", ""), texts.get("status", ""), texts.get("reason", ""), texts.get("message", ""), at
        )
    for part in _mapping(status).values():
        for each in _list(part):
            yield from _conditions(each)


def _references(given: object) -> Iterator[str]:
    """Yield the names of the objects that a specification refers to."""
    for key, value in _mapping(given).items():
        for each in _list(value) or [value]:
            if key.endswith(("Ref", "Refs")) and key != "parentRefs" and _text(_at(each, "name")):
                yield _text(_at(each, "name"))
            yield from _references(each)


def _container(given: object, states: list[object], *, is_init: bool) -> Container:
    state = next((each for each in states if _at(each, "name") == _at(given, "name")), None)
    waits, over = _at(state, "state", "waiting"), _at(state, "state", "terminated")
    ended = over or _at(state, "lastState", "terminated")
    is_read = state is not None
    return Container(
        _text(_at(given, "name")),
        tuple(_port(each, "Pod") for each in _list(_at(given, "ports"))),
        {_text(_at(each, "name")): _text(_at(each, "value")) for each in _list(_at(given, "env"))},
        {
            name: probe
            for name in ("liveness", "readiness", "startup")
            if (probe := _probe(_mapping(_at(given, f"{name}Probe"))))
        },
        _texts(_at(given, "resources", "limits")),
        is_init,
        _at(state, "ready") is True if is_read else None,
        _text(_at(waits, "reason")) if is_read else None,
        _text(_at(over, "reason")) if is_read else None,
        _text(_at(waits, "message") or _at(ended, "message")) if is_read else None,
        _text(_at(ended, "reason")) or None,
        _number(_at(ended, "exitCode")),
        time_of(_text(_at(ended, "finishedAt"))),
        _number(_at(state, "restartCount")),
    )


def _port(given: object, kind: str) -> Port:
    number = _text(_at(given, "port" if kind == "Service" else "containerPort"))
    target = _text(_at(given, "targetPort")) or (number if kind == "Service" else "")
    return Port(number, _text(_at(given, "protocol")) or "TCP", _text(_at(given, "name")), target)


def _probe(given: Mapping[str, object]) -> Probe | None:
    handler = next((each for each in _HANDLERS if each in given), None)
    if handler is None:
        return None
    times = [
        _number(given.get(name))
        for name in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "failureThreshold")
    ]
    usual = (each if each is not None else usual for each, usual in zip(times, (0, 1, 10, 3), strict=True))
    return Probe(_HANDLERS[handler], _text(_at(given, handler, "port")), *usual)


def _shown(given: object) -> object:
    """Return an object without what no quote needs, so that a line of it can be shown."""
    metadata = {key: value for key, value in _mapping(_at(given, "metadata")).items() if key in ("name", "namespace")}
    return {**_mapping(given), "metadata": metadata}


def _at(given: object, *path: str) -> object:
    for key in path:
        given = _mapping(given).get(key)
    return given


def _mapping(given: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", given) if isinstance(given, dict) else {}


def _list(given: object) -> list[object]:
    return cast("list[object]", given) if isinstance(given, list) else []


def _text(given: object) -> str:
    if isinstance(given, datetime):
        return given.isoformat()
    return str(given) if isinstance(given, str | int | float) else ""


def _texts(given: object) -> dict[str, str]:
    return {str(key): _text(value) for key, value in _mapping(given).items()}


def _number(given: object) -> int | None:
    return given if isinstance(given, int) and not isinstance(given, bool) else None
