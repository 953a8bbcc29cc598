"""Read objects from manifests, in YAML or JSON, as the API of Kubernetes gives them or as somebody applied them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

import yaml

from core.model.lenient_formats import refuse_deep_yaml
from core.rca.cluster.described import is_control
from core.rca.cluster.state import Container, Port, Probe, ShownPart, Thing

MAX_MANIFEST = 200_000  # characters
_IS_MANIFEST = re.compile(r"^[ {\[]*[\"']?(?:apiVersion|kind)[\"']?:", re.MULTILINE)
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_KINDS = {
    "Pod": "Pod", "ReplicaSet": "ReplicaSet", "Service": "Service", "Endpoints": "Endpoints", "Node": "Node",
    "ResourceQuota": "Quota", "PersistentVolumeClaim": "Claim", "PersistentVolume": "Volume",
    "StorageClass": "StorageClass", "ServiceAccount": "Account",
} | dict.fromkeys(("Deployment", "StatefulSet", "DaemonSet"), "Workload")  # fmt: skip
_HANDLERS = {"httpGet": "http-get", "grpc": "grpc", "tcpSocket": "tcp-socket", "exec": "exec"}
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def is_manifest(text: str) -> bool:
    return _IS_MANIFEST.search(text[:MAX_MANIFEST]) is not None


def things(text: str, source: str, seen: set[str]) -> Iterator[tuple[Thing, bool]]:
    """Yield the objects of all documents of a text, and whether each is the API's.

    `seen` are the documents that other outputs had already.
    """
    for part in text[:MAX_MANIFEST].split("\n---"):
        if part in seen:
            continue
        seen.add(part)
        try:
            refuse_deep_yaml(part)
            document = _Loader(part).get_single_data()
        except (yaml.YAMLError, RecursionError, ValueError):
            continue
        for each in _list(_at(document, "items")) or [document]:
            kind = _KINDS.get(_text(_at(each, "kind")), "")
            if kind and _text(_at(each, "metadata", "name")):
                yield (
                    _thing(each, kind, ShownPart(source, part)),
                    bool(_at(each, "status") or _at(each, "metadata", "uid")),
                )


def _thing(given: object, kind: str, shown: ShownPart) -> Thing:
    spec, status, metadata = _at(given, "spec"), _at(given, "status"), _at(given, "metadata")
    template = _at(spec, "template", "spec") or spec
    claimed = kind == "Claim"
    states = [*_list(_at(status, "containerStatuses")), *_list(_at(status, "initContainerStatuses"))]
    wanted = len(states) if states else _number(_at(spec, "replicas"))
    ready = sum(_at(each, "ready") is True for each in states) if states else _number(_at(status, "readyReplicas"))
    met = next((each for each in _list(_at(status, "conditions")) if _at(each, "type") == "Ready"), None)
    phase = _text(_at(status, "phase"))
    if kind == "Node" and met:
        phase = "Ready" if _at(met, "status") == "True" else "NotReady"
    if kind == "Workload" and status and ready is None:
        ready = 0
    routes = kind == "Service" and _at(spec, "type") != "ExternalName"  # which is a name, without pods and ports
    selector = _at(spec, "selector", "matchLabels") or (_at(spec, "selector") if routes or kind == "Claim" else None)
    owner = next(iter(_list(_at(metadata, "ownerReferences"))), None)
    subsets = _list(_at(given, "subsets"))
    return Thing(
        kind=kind,
        name=_text(_at(metadata, "name")),
        namespace=_text(_at(metadata, "namespace")),
        status=phase,
        wanted=wanted,
        ready=ready,
        restarts=sum(_number(_at(each, "restartCount")) or 0 for each in states) if states else None,
        owner=f"{_text(_at(owner, 'kind'))}/{_text(_at(owner, 'name'))}" if owner else "",
        node=_text(_at(spec, "nodeName")),
        labels=_texts(_at(spec, "template", "metadata", "labels") or _at(metadata, "labels")),
        selector=_texts(selector),
        containers=tuple(_container(each, states) for each in _list(_at(template, "containers"))),
        node_selector=_texts(_at(template, "nodeSelector")),
        claims=tuple(
            name
            for each in _list(_at(template, "volumes"))
            if (name := _text(_at(each, "persistentVolumeClaim", "claimName")))
        ),
        ports=tuple(_port(each, kind) for each in _list(_at(spec, "ports"))) if routes else (),
        endpoints=tuple(_text(_at(each, "ip")) for one in subsets for each in _list(_at(one, "addresses")))
        if kind == "Endpoints"
        else None,
        hard=_texts(_at(status, "hard") or _at(spec, "hard")) if kind == "Quota" else {},
        used=_texts(_at(status, "used")) if kind == "Quota" else {},
        capacity=_text(_at(spec, "resources", "requests", "storage") if claimed else _at(spec, "capacity", "storage")),
        modes=tuple(_MODES.get(_text(each), _text(each)) for each in _list(_at(spec, "accessModes"))),
        storage_class=_text(_at(spec, "storageClassName")) if "storageClassName" in _mapping(spec) else None,
        target=_text(_at(spec, "volumeName") if claimed else _at(spec, "claimRef", "name")),
        cordoned=_at(spec, "unschedulable") is True,
        is_control=kind == "Node" and is_control("", _texts(_at(metadata, "labels"))),
        why=_text(_at(met, "message")) if kind == "Node" and phase == "NotReady" else "",
        shown=(shown,),
    )


def _container(given: object, states: list[object]) -> Container:
    state = next((each for each in states if _at(each, "name") == _at(given, "name")), None)
    waits = next(iter(_mapping(_at(state, "state")).values()), None)
    ended = next(iter(_mapping(_at(state, "lastState")).values()), None)
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
        _text(_at(waits, "reason")),
        _text(_at(ended, "reason")),
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


def _at(given: object, *path: str) -> object:
    for key in path:
        given = _mapping(given).get(key)
    return given


def _mapping(given: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", given) if isinstance(given, dict) else {}


def _list(given: object) -> list[object]:
    return cast("list[object]", given) if isinstance(given, list) else []


def _text(given: object) -> str:
    return str(given) if isinstance(given, str | int | float) else ""


def _texts(given: object) -> dict[str, str]:
    return {str(key): _text(value) for key, value in _mapping(given).items()}


def _number(given: object) -> int | None:
    return given if isinstance(given, int) and not isinstance(given, bool) else None
