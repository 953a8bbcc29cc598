"""A world in the forms in which it is read: through an API, as outputs of kubectl in text or JSON, and pasted."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from core.rca.tool_outputs import ToolOutput
from tests.worlds.world import LOOK, T0, Object, Row, World

NOW = T0 + timedelta(seconds=LOOK)
LOGGED = 60  # last lines of a log
PLURALS = {
    "Endpoints": "endpoints",
    "NetworkPolicy": "networkpolicies",
    "StorageClass": "storageclasses",
    "Ingress": "ingresses",
}


def plural(kind: str) -> str:
    return PLURALS.get(kind, f"{kind.lower()}s")


def stamp(seconds: float) -> str:
    return f"{(T0 + timedelta(seconds=seconds)).isoformat(timespec='milliseconds').removesuffix('+00:00')}Z"


def line_of(level: str, text: str) -> str:
    """Return a record as its program writes it, which gives the level itself in a structured one."""
    return text if text[:1] in "{I[0123456789" or text.startswith("level=") else f"{level} {text}"


def age(since: str) -> str:
    seconds = int((NOW - datetime.fromisoformat(since)).total_seconds())
    if seconds < 120:
        return f"{seconds}s"
    if seconds < 600:
        return f"{seconds // 60}m{seconds % 60}s" if seconds % 60 else f"{seconds // 60}m"
    if seconds < 3 * 3_600:
        return f"{seconds // 60}m"
    return f"{seconds // 3_600}h" if seconds < 2 * 86_400 else f"{seconds // 86_400}d"


def _table(rows: Sequence[Sequence[object]]) -> str:
    widths = [max(len(str(row[column])) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "   ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _statuses(pod: Object) -> list[Object]:
    return list(pod["status"].get("containerStatuses", []))


def pod_state(pod: Object) -> str:
    """Return the column STATUS, by the rules of kubectl."""
    status = pod["status"]
    if "deletionTimestamp" in pod["metadata"]:
        return "Terminating"
    shown = str(status.get("reason") or status["phase"])
    for each in reversed(_statuses(pod)):
        waits, over = each["state"].get("waiting"), each["state"].get("terminated")
        if waits or over:
            shown = str((waits or over)["reason"])
    return shown


def _restarts(pod: Object) -> str:
    count = sum(each["restartCount"] for each in _statuses(pod))
    ends = [each["lastState"]["terminated"]["finishedAt"] for each in _statuses(pod) if each["lastState"]]
    return f"{count} ({age(max(ends))} ago)" if count and ends else str(count)


def _pod(pod: Object) -> list[object]:
    ready = sum(each["ready"] for each in _statuses(pod))
    name, spec, status = pod["metadata"]["name"], pod["spec"], pod["status"]
    return [
        name,
        f"{ready}/{len(spec['containers'])}",
        pod_state(pod),
        _restarts(pod),
        age(pod["metadata"]["creationTimestamp"]),
        status.get("podIP", "<none>"),
        spec.get("nodeName", "<none>"),
    ]


def _service(service: Object) -> list[object]:
    spec = service["spec"]
    ports = ",".join(f"{each['port']}/{each['protocol']}" for each in spec.get("ports", ())) or "<none>"
    return [
        service["metadata"]["name"],
        spec["type"],
        spec.get("clusterIP", "<none>"),
        spec.get("externalName", "<none>"),
        ports,
        age(service["metadata"]["creationTimestamp"]),
        _pairs(spec.get("selector"), ","),
    ]


def _pairs(values: Mapping[str, object] | None, between: str) -> str:
    return between.join(f"{key}={value}" for key, value in (values or {}).items()) or "<none>"


def _endpoints(endpoints: Object) -> str:
    pairs = [
        f"{address['ip']}:{port['port']}"
        for subset in endpoints.get("subsets", ())
        for address in subset.get("addresses", ())
        for port in subset["ports"]
    ]
    return ",".join(pairs[:3]) + (f" + {len(pairs) - 3} more..." if len(pairs) > 3 else "") or "<none>"


def _replicas(workload: Object) -> str:
    return f"{workload['status'].get('readyReplicas', 0)}/{workload['spec']['replicas']}"


def _node(node: Object) -> list[object]:
    ready = next(each for each in node["status"]["conditions"] if each["type"] == "Ready")["status"] == "True"
    cordoned = ",SchedulingDisabled" if node["spec"].get("unschedulable") else ""
    return [
        node["metadata"]["name"],
        ("Ready" if ready else "NotReady") + cordoned,
        "<none>",
        age(node["metadata"]["creationTimestamp"]),
        "v1.31.4",
    ]


def _name(given: Object) -> str:
    return str(given["metadata"]["name"])


def _age(given: Object) -> str:
    return age(given["metadata"]["creationTimestamp"])


COLUMNS: Mapping[str, tuple[str, Callable[[Object], list[object]]]] = {
    "Pod": ("NAME|READY|STATUS|RESTARTS|AGE|IP|NODE", _pod),
    "Deployment": ("NAME|READY|UP-TO-DATE|AVAILABLE|AGE", lambda o: [_name(o), _replicas(o), o["status"].get("updatedReplicas", 0), o["status"].get("availableReplicas", 0), _age(o)]),
    "StatefulSet": ("NAME|READY|AGE", lambda o: [_name(o), _replicas(o), _age(o)]),
    "DaemonSet": ("NAME|DESIRED|CURRENT|READY|UP-TO-DATE|AVAILABLE|NODE SELECTOR|AGE", lambda o: [_name(o), *[o["status"][key] for key in ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable")], _pairs(o["spec"]["template"]["spec"].get("nodeSelector"), ","), _age(o)]),
    "ReplicaSet": ("NAME|DESIRED|CURRENT|READY|AGE", lambda o: [_name(o), o["spec"]["replicas"], o["status"].get("replicas", 0), o["status"].get("readyReplicas", 0), _age(o)]),
    "Service": ("NAME|TYPE|CLUSTER-IP|EXTERNAL-IP|PORT(S)|AGE|SELECTOR", _service),
    "Endpoints": ("NAME|ENDPOINTS|AGE", lambda o: [_name(o), _endpoints(o), _age(o)]),
    "Node": ("NAME|STATUS|ROLES|AGE|VERSION", _node),
    "PersistentVolumeClaim": ("NAME|STATUS|VOLUME|CAPACITY|ACCESS MODES|STORAGECLASS|AGE", lambda o: [_name(o), o["status"]["phase"], o["spec"].get("volumeName", ""), "", "", o["spec"]["storageClassName"], _age(o)]),
    "StorageClass": ("NAME|PROVISIONER|RECLAIMPOLICY|VOLUMEBINDINGMODE|AGE", lambda o: [_name(o), o["provisioner"], o["reclaimPolicy"], o["volumeBindingMode"], _age(o)]),
    "ResourceQuota": ("NAME|AGE|REQUEST|LIMIT", lambda o: [_name(o), _age(o), ", ".join(f"{key}: {o['status']['used'][key]}/{hard}" for key, hard in o["status"]["hard"].items()), ""]),
    "HorizontalPodAutoscaler": ("NAME|REFERENCE|TARGETS|MINPODS|MAXPODS|REPLICAS|AGE", lambda o: [_name(o), f"Deployment/{o['spec']['scaleTargetRef']['name']}", f"cpu: {o['status']['currentMetrics'][0]['resource']['current']['averageUtilization']}%/70%", o["spec"]["minReplicas"], o["spec"]["maxReplicas"], o["status"]["currentReplicas"], _age(o)]),
    "Job": ("NAME|STATUS|COMPLETIONS|DURATION|AGE", lambda o: [_name(o), o["status"]["conditions"][0]["type"], f"{o['status']['succeeded']}/1", "5m", _age(o)]),
    "CronJob": ("NAME|SCHEDULE|TIMEZONE|SUSPEND|ACTIVE|LAST SCHEDULE|AGE", lambda o: [_name(o), o["spec"]["schedule"], "<none>", o["spec"]["suspend"], 0, age(o["status"]["lastScheduleTime"]), _age(o)]),
    "PodDisruptionBudget": ("NAME|MIN AVAILABLE|MAX UNAVAILABLE|ALLOWED DISRUPTIONS|AGE", lambda o: [_name(o), o["spec"]["minAvailable"], "N/A", o["status"]["disruptionsAllowed"], _age(o)]),
    "NetworkPolicy": ("NAME|POD-SELECTOR|AGE", lambda o: [_name(o), _pairs(o["spec"]["podSelector"].get("matchLabels"), ","), _age(o)]),
    "ScaledObject": ("NAME|SCALETARGETKIND|SCALETARGETNAME|MIN|MAX|TRIGGERS|READY|ACTIVE|AGE", lambda o: [_name(o), "apps/v1.Deployment", o["spec"]["scaleTargetRef"]["name"], 0, o["spec"]["maxReplicaCount"], "rabbitmq", "True", "False", _age(o)]),
    "Rollout": ("NAME|DESIRED|CURRENT|UP-TO-DATE|AVAILABLE|AGE", lambda o: [_name(o), o["spec"]["replicas"], o["status"]["replicas"], 1, o["status"]["availableReplicas"], _age(o)]),
    "ServiceAccount": ("NAME|SECRETS|AGE", lambda o: [_name(o), 0, _age(o)]),
}  # fmt: skip


def got(objects: Sequence[Object]) -> str:
    """Return `kubectl get -o wide` of objects of one kind."""
    header, row = COLUMNS[objects[0]["kind"]]
    return _table([header.split("|"), *map(row, objects)])


def _last(event: Object) -> str:
    return age(event["lastTimestamp"])


def events_text(world: World) -> str:
    """Return `kubectl get events`."""
    events = sorted(world.of("Event"), key=lambda each: each["lastTimestamp"])
    if not events:
        return f"No resources found in {world.namespace} namespace."
    rows = [
        [
            _last(each),
            each["type"],
            each["reason"],
            f"{each['involvedObject']['kind'].lower()}/{each['involvedObject']['name']}",
            each["message"],
        ]
        for each in events
    ]
    return _table([["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"], *rows])


def _state_lines(title: str, state: Mapping[str, Object]) -> list[str]:
    lines: list[str] = []
    for name, fields in state.items():
        lines.append(f"    {title + ':':<15}{name.capitalize()}")
        shown = {
            "Reason": fields.get("reason"),
            "Message": fields.get("message"),
            "Exit Code": fields.get("exitCode"),
            "Started": _long(fields.get("startedAt")),
            "Finished": _long(fields.get("finishedAt")),
        }
        lines += [f"      {key + ':':<13}{value}" for key, value in shown.items() if value not in (None, "")]
    return lines


def _long(at: str | None) -> str:
    return f"{datetime.fromisoformat(at):%a, %d %b %Y %H:%M:%S +0000}" if at else ""


def _probe_text(probe: Object) -> str:
    if "httpGet" in probe:
        handler = f"http-get http://:{probe['httpGet']['port']}{probe['httpGet'].get('path', '/')}"
    else:
        handler = f"grpc <pod>:{probe['grpc']['port']} "
    return f"{handler} delay={probe.get('initialDelaySeconds', 0)}s timeout={probe.get('timeoutSeconds', 1)}s period={probe.get('periodSeconds', 10)}s #success=1 #failure={probe.get('failureThreshold', 3)}"


def _container_text(given: Object, status: Object | None) -> list[str]:
    ports = [f"{each['containerPort']}/{each['protocol']}" for each in given.get("ports", ())]
    lines = [
        f"  {given['name']}:",
        f"    Image:         {given['image']}",
        f"    {'Port:' if len(ports) < 2 else 'Ports:':<15}{', '.join(ports) or '<none>'}",
    ]
    if status is not None:
        lines += _state_lines("State", status["state"]) + _state_lines("Last State", status["lastState"])
        lines += [f"    Ready:         {status['ready']}", f"    Restart Count: {status['restartCount']}"]
    for key in ("limits", "requests"):
        if amounts := given.get("resources", {}).get(key):
            lines += [f"    {key.capitalize()}:", *(f"      {name}:  {value}" for name, value in amounts.items())]
    for name in ("liveness", "readiness"):
        if probe := given.get(f"{name}Probe"):
            lines.append(f"    {name.capitalize() + ':':<15}{_probe_text(probe)}")
    lines.append("    Environment:   " + ("<none>" if not given.get("env") else ""))
    for each in given.get("env", ()):
        origin = each.get("valueFrom", {})
        if secret := origin.get("secretKeyRef"):
            lines.append(
                f"      {each['name']}:  <set to the key '{secret['key']}' in secret '{secret['name']}'>  Optional: false"
            )
        elif setting := origin.get("configMapKeyRef"):
            lines.append(
                f"      {each['name']}:  <set to the key '{setting['key']}' of config map '{setting['name']}'>  Optional: {str(setting.get('optional', False)).lower()}"
            )
        else:
            lines.append(f"      {each['name']}:  {each.get('value', '')}")
    return lines


def described(world: World, given: Object) -> str:
    """Return `kubectl describe` of a pod, a service, a workload or a node."""
    metadata, spec, status, kind = given["metadata"], given["spec"], given.get("status", {}), given["kind"]
    lines = [f"Name:             {metadata['name']}"]
    lines += [f"Namespace:        {metadata['namespace']}"] if "namespace" in metadata else []
    labels = _pairs(metadata.get("labels"), "\n                  ")
    if kind == "Pod":
        lines += [
            f"Service Account:  {spec['serviceAccountName']}",
            f"Node:             {spec.get('nodeName', '<none>')}",
            f"Labels:           {labels}",
            f"Status:           {status['phase']}",
        ]
        lines += [f"{key.capitalize() + ':':<18}{status[key]}" for key in ("reason", "message") if status.get(key)]
        lines += [f"IP:               {status.get('podIP', '')}"]
        lines += (
            [f"Controlled By:    {metadata['ownerReferences'][0]['kind']}/{metadata['ownerReferences'][0]['name']}"]
            if metadata["ownerReferences"]
            else []
        )
        for title, containers, states in (
            ("Init Containers", "initContainers", "initContainerStatuses"),
            ("Containers", "containers", "containerStatuses"),
        ):
            by_name = {each["name"]: each for each in status.get(states, ())}
            lines += [f"{title}:"] if spec.get(containers) else []
            lines += [
                line for each in spec.get(containers, ()) for line in _container_text(each, by_name.get(each["name"]))
            ]
        lines += [
            "Conditions:",
            "  Type              Status",
            *(f"  {each['type']:<17} {each['status']}" for each in status["conditions"]),
        ]
        lines += ["Volumes:"]
        for each in spec.get("volumes", ()):
            lines += [
                f"  {each['name']}:",
                "    Type:       PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)",
                f"    ClaimName:  {each['persistentVolumeClaim']['claimName']}",
                "    ReadOnly:   false",
            ]
        lines += [
            "  kube-api-access-b8x2k:",
            "    Type:                    Projected (a volume that contains injected data from multiple sources)",
            "QoS Class:                   Burstable",
            f"Node-Selectors:              {_pairs(spec.get('nodeSelector'), ',')}",
        ]
    elif kind == "Service":
        endpoints = next(iter(world.of("Endpoints", metadata["name"])), {})
        lines += [
            f"Labels:           {labels}",
            f"Selector:         {_pairs(spec.get('selector'), ',')}",
            f"Type:             {spec['type']}",
            f"IP:               {spec.get('clusterIP', '')}",
        ]
        lines += [f"External Name:    {spec['externalName']}"] if "externalName" in spec else []
        for port in spec.get("ports", ()):
            addresses = [
                f"{address['ip']}:{each['port']}"
                for subset in endpoints.get("subsets", ())
                for each in subset["ports"]
                if each["name"] == port["name"]
                for address in subset.get("addresses", ())
            ]
            lines += [
                f"Port:             {port['name']}  {port['port']}/{port['protocol']}",
                f"TargetPort:       {port['targetPort']}/{port['protocol']}",
                f"Endpoints:        {','.join(addresses) or '<none>'}",
            ]
        lines += ["Session Affinity: None"]
    elif kind == "Node":
        lines += [
            f"Labels:           {labels}",
            f"Unschedulable:    {str(bool(spec.get('unschedulable'))).lower()}",
            "Conditions:",
            "  Type             Status   Reason                       Message",
            "  ----             ------   ------                       -------",
        ]
        lines += [
            f"  {each['type']:<16} {each['status']:<8} {each['reason']:<28} {each['message']}"
            for each in status["conditions"]
        ]
        lines += [
            "Capacity:",
            *(f"  {key}:  {value}" for key, value in status["capacity"].items()),
            "Allocatable:",
            *(f"  {key}:  {value}" for key, value in status["allocatable"].items()),
        ]
    else:
        counts = f"{spec['replicas']} desired | {status.get('updatedReplicas', 0)} updated | {status.get('replicas', 0)} total | {status.get('availableReplicas', 0)} available | {spec['replicas'] - status.get('availableReplicas', 0)} unavailable"
        lines += [
            f"Labels:           {labels}",
            f"Selector:         {_pairs(spec['selector']['matchLabels'], ',')}",
            f"Replicas:         {counts}",
            "Pod Template:",
            f"  Labels:  {_pairs(spec['template']['metadata']['labels'], chr(10) + '           ')}",
            "  Containers:",
        ]
        lines += [
            f"  {line}" for each in spec["template"]["spec"]["containers"] for line in _container_text(each, None)
        ]
        lines += [
            "Conditions:",
            "  Type           Status  Reason",
            *(f"  {each['type']:<14} {each['status']:<7} {each['reason']}" for each in status.get("conditions", ())),
        ]
    about = [each for each in world.of("Event") if each["involvedObject"]["name"] == metadata["name"]]
    rows = [
        [
            each["type"],
            each["reason"],
            f"{_last(each)} (x{each['count']} over 20m)" if each["count"] > 1 else _last(each),
            "kubelet",
            each["message"],
        ]
        for each in about
    ]
    head = [["Type", "Reason", "Age", "From", "Message"], ["----", "------", "----", "----", "-------"]]
    lines += (
        ["Events:", *(f"  {line}" for line in _table([*head, *rows]).splitlines())] if rows else ["Events:  <none>"]
    )
    return "\n".join(lines)


def rows_text(rows: Sequence[Row]) -> str:
    return "\n".join(line_of(level, text) for _, level, text in rows[-LOGGED:])


def by_kind(world: World) -> dict[str, list[Object]]:
    kinds: dict[str, list[Object]] = {}
    for each in world.objects:
        kinds.setdefault(each["kind"], []).append(each)
    return kinds


def outputs(world: World, form: str) -> tuple[ToolOutput, ...]:
    """Return a world as outputs of a tool that runs kubectl, in `text` or in `json`."""
    made: list[ToolOutput] = []
    kinds = by_kind(world)
    for kind, objects in kinds.items():
        arguments = {"resourceType": plural(kind), "namespace": world.namespace}
        if form == "json":
            document: dict[str, Any] = {"apiVersion": "v1", "kind": "List", "items": objects}
            made.append(ToolOutput("kubectl_get", arguments | {"output": "json"}, json.dumps(document, indent=1)))
        elif kind in COLUMNS:
            made.append(ToolOutput("kubectl_get", arguments | {"output": "wide"}, got(objects)))
    if form == "text" and world.objects:
        made.append(
            ToolOutput("kubectl_get", {"resourceType": "events", "namespace": world.namespace}, events_text(world))
        )
        shown = [
            *kinds.get("Deployment", ()),
            *kinds.get("StatefulSet", ()),
            *kinds.get("Service", ()),
            *kinds.get("Pod", ()),
            *kinds.get("Node", ()),
        ]
        made += [
            ToolOutput(
                "kubectl_describe",
                {"resourceType": each["kind"].lower(), "name": _name(each), "namespace": world.namespace},
                described(world, each),
            )
            for each in shown
        ]
    for previous, logs in (("", world.pod_logs), ("true", world.previous_logs)):
        for (pod, container), rows in logs.items():
            arguments = {
                "resourceType": "pod",
                "name": pod,
                "container": container,
                "namespace": world.namespace,
                "previous": previous,
            }
            made.append(ToolOutput("kubectl_logs", arguments, rows_text(rows)))
    for service, rows in world.logs.items():
        text = "\n".join(f"{stamp(at)} {line_of(level, said)}" for at, level, said in rows[-80:])
        made.append(ToolOutput("get_logs", {"service": service, "limit": "80"}, text))
    return tuple(each for each in made if each.text.strip())


def question(world: World) -> str:
    return f"{world.alert['summary']}. {world.alert['description']} Service: {world.service}. What is the cause?"


def pasted(world: World, *, prompts: bool) -> str:
    """Return the alert with what a person copied from a terminal below it, with the commands if `prompts`."""
    kinds = by_kind(world)
    parts = [f"{world.alert['summary']} (service {world.service})", world.alert["description"]]

    def ran(command: str, text: str) -> None:
        parts.extend(["", *([f"$ kubectl -n {world.namespace} {command}"] if prompts else []), text])

    for kind, objects in kinds.items():
        if kind in COLUMNS:
            ran(f"get {plural(kind)} -o wide", got(objects))
    if world.objects:
        ran("get events", events_text(world))
        worst = sorted(kinds.get("Pod", ()), key=lambda each: pod_state(each) in ("Running", "Completed", "Succeeded"))[
            :1
        ]
        for each in [*kinds.get("Service", ())[:2], *worst]:
            ran(f"describe {each['kind'].lower()} {_name(each)}", described(world, each))
        for pod in worst:
            for flag, logs in (("", world.pod_logs), (" --previous", world.previous_logs)):
                for (name, container), rows in logs.items():
                    if name == _name(pod) and rows:
                        ran(f"logs {name} -c {container} --tail 25{flag}", rows_text(rows[-25:]))
        if prompts:
            ran("get --raw /healthz", '{"status":"ok","errors":0,"failures":0}')
    for service, rows in world.logs.items():
        parts += [
            "",
            f"last lines of {service}:",
            *(f"{stamp(at)} {line_of(level, text)}" for at, level, text in rows[-60:]),
        ]
    return "\n".join(parts)
