"""A world: the objects of a namespace as the API gives them, with logs, metrics and changes around an alert.

All times are seconds from the start of the alert, which is `T0`; the world is looked at `LOOK` seconds after it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

T0 = datetime(2026, 3, 10, 9, 0, tzinfo=UTC)
LOOK = 180.0
MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
Object = dict[str, Any]
Row = tuple[float, str, str]  # seconds, level, text

_NAMES = (
    "alder beech birch cedar elder hazel holly larch linden maple myrtle poplar rowan spruce sorrel tansy thyme yarrow "
    "basalt chalk flint gneiss marble quartz schist slate topaz agate beryl garnet jasper onyx opal amber"
).split()
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
_BUSINESS = (
    (
        "OrdersBelowLastWeek",
        "Orders per 10 minutes are 28 % below the same hour of last week",
        "From the warehouse, every 5 minutes.",
    ),
    (
        "ClientSuccessLow",
        "Success of {area} measured in browsers is 95.9 % (objective 97 %)",
        "Reported by apps and browsers.",
    ),
    ("TicketsHigh", "Support tickets about {area} are above 12 per hour", "Counted by the help desk."),
    (
        "JourneyFailing",
        "The synthetic journey “{area}” failed 3 of 20 runs",
        "Measured by probes outside of our network.",
    ),
)


def iso(seconds: float) -> str:
    return f"{T0 + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


@dataclass(frozen=True)
class Truth:
    """The fault of a world: what the stated cause must match, every pattern, ignoring case; and what it must not.

    `shown_by` are the ways in that show the fault at all, empty for all of them.
    """

    must: tuple[str, ...]
    never: tuple[str, ...] = ()
    shown_by: tuple[str, ...] = ()


@dataclass
class World:
    """A world under construction. `pod_logs` and `previous_logs` are by pod and container, `logs` by service."""

    seed: int
    objects: list[Object] = field(default_factory=list[Object])
    pod_logs: dict[tuple[str, str], list[Row]] = field(default_factory=dict[tuple[str, str], list[Row]])
    previous_logs: dict[tuple[str, str], list[Row]] = field(default_factory=dict[tuple[str, str], list[Row]])
    logs: dict[str, list[Row]] = field(default_factory=dict[str, list[Row]])
    metrics: dict[str, dict[str, list[float]]] = field(default_factory=dict[str, dict[str, list[float]]])
    changes: list[Object] = field(default_factory=list[Object])
    dependencies: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    apps: dict[str, str] = field(default_factory=dict[str, str])  # the selector of each service's pods
    truth: Truth | None = None

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.service, self.caller, self.other = self.random.sample(_NAMES, 3)
        self.namespace = self.random.choice(("shop", "prod", "web", "platform"))
        name, summary, description = self.random.choice(_BUSINESS)
        self.alert: dict[str, str] = {
            "name": name, "severity": "critical", "summary": summary.format(area=f"{self.service} pages"), "description": description,
        }  # fmt: skip
        self.dependencies[self.caller] = (self.service,)

    def generated(self, length: int) -> str:
        return "".join(self.random.choice(_SUFFIX) for _ in range(length))

    def add(
        self,
        kind: str,
        name: str,
        version: str = "v1",
        *,
        created: float = -40 * DAY,
        namespaced: bool = True,
        **parts: Any,
    ) -> Object:
        metadata: Object = {
            "name": name,
            "creationTimestamp": iso(created),
            "uid": f"{self.generated(8)}-{self.generated(4)}",
        }
        if namespaced:
            metadata["namespace"] = self.namespace
        metadata |= parts.pop("metadata", {})
        made = {"apiVersion": version, "kind": kind, "metadata": metadata, **parts}
        self.objects.append(made)
        return made

    def of(self, kind: str, name: str = "") -> list[Object]:
        return [each for each in self.objects if each["kind"] == kind and name in ("", each["metadata"]["name"])]

    def pods(self, app: str = "") -> list[Object]:
        return [
            each for each in self.of("Pod") if each["metadata"].get("labels", {}).get("app") == (app or self.service)
        ]

    def node(
        self,
        name: str,
        *,
        ready: bool = True,
        labels: dict[str, str] | None = None,
        since: float = -90 * DAY,
        **spec: Any,
    ) -> Object:
        conditions = [
            _condition(
                "MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"
            ),
            _condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            _condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            _condition("Ready", "True", "KubeletReady", "kubelet is posting ready status")
            if ready
            else _condition("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.", since),
        ]
        return self.add(
            "Node", name, namespaced=False, spec=spec,
            metadata={"labels": {"kubernetes.io/hostname": name} | (labels or {})},
            status={"conditions": conditions, "allocatable": {"cpu": "7910m", "memory": "31652816Ki", "pods": "110"},
                    "capacity": {"cpu": "8", "memory": "32780432Ki", "pods": "110"}},
        )  # fmt: skip

    def app(
        self, name: str, *, port: int = 8080, replicas: int = 2, ready: int | None = None, containers: list[Object] | None = None,
        labels: dict[str, str] | None = None, age: float = -3 * DAY, service: bool = True, target: int | str | None = None, kind: str = "Deployment",
        selector: dict[str, str] | None = None, spec: Object | None = None,
    ) -> Object:  # fmt: skip
        """Add a workload with its set, its pods, its service and its endpoints, all ready unless `ready` says fewer."""
        labels = labels or {"app": name}
        containers = containers if containers is not None else [container(name, port)]
        ready = replicas if ready is None else ready
        template = {
            "metadata": {"labels": labels},
            "spec": {"containers": containers, "serviceAccountName": "default", **(spec or {})},
        }
        counts = {"replicas": replicas, "readyReplicas": ready, "availableReplicas": ready, "updatedReplicas": replicas}
        made = self.add(
            kind, name, "apps/v1", metadata={"labels": labels, "annotations": {"deployment.kubernetes.io/revision": "7"}},
            spec={"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
            status={key: value for key, value in counts.items() if value} | {"conditions": [
                _condition("Available", "True" if ready or not replicas else "False",
                           "MinimumReplicasAvailable" if ready or not replicas else "MinimumReplicasUnavailable", "")]},
        )  # fmt: skip
        owner = {"kind": kind, "name": name}
        if kind == "Deployment":
            hashed = self.generated(9)
            self.add(
                "ReplicaSet", f"{name}-{hashed}", "apps/v1", created=age, metadata={"labels": labels, "ownerReferences": [owner]},
                spec={"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
                status={"replicas": replicas, "readyReplicas": ready},
            )  # fmt: skip
            owner = {"kind": "ReplicaSet", "name": f"{name}-{hashed}"}
        nodes = [each["metadata"]["name"] for each in self.of("Node")] or ["node-1"]
        for number in range(replicas):
            pod_name = f"{name}-{number}" if kind == "StatefulSet" else f"{owner['name']}-{self.generated(5)}"
            self.pod(
                pod_name,
                containers,
                labels,
                owner,
                node=nodes[number % len(nodes)],
                ready=number < ready,
                age=age,
                spec=spec,
            )
        self.apps[name] = ",".join(f"{key}={value}" for key, value in labels.items())
        if service:
            self.service_for(name, selector or labels, [(80, target if target is not None else port)])
        return made

    def pod(
        self, name: str, containers: list[Object], labels: dict[str, str], owner: Object | None = None, *, node: str = "node-1", ready: bool = True,
        age: float = -3 * DAY, phase: str = "Running", spec: Object | None = None, statuses: list[Object] | None = None,
    ) -> Object:  # fmt: skip
        given = statuses if statuses is not None else [running(each["name"], age, ready=ready) for each in containers]
        return self.add(
            "Pod", name, created=age, metadata={"labels": dict(labels), "ownerReferences": [owner] if owner else []},
            spec={"containers": containers, "nodeName": node, "serviceAccountName": "default", **(spec or {})},
            status={"phase": phase, "podIP": f"10.1.{self.random.randrange(9)}.{self.random.randrange(2, 250)}", "startTime": iso(age),
                    "conditions": [_condition("Ready", "True" if ready else "False", "" if ready else "ContainersNotReady", "", age)],
                    "containerStatuses": given},
        )  # fmt: skip

    def service_for(
        self, name: str, selector: dict[str, str], ports: list[tuple[int, int | str]], **spec: Any
    ) -> Object:
        """Add a service, and the endpoints of the ready pods that it selects."""
        made = self.add(
            "Service", name, metadata={"labels": selector},
            spec={"type": "ClusterIP", "clusterIP": f"10.96.{self.random.randrange(9)}.{self.random.randrange(2, 250)}", "selector": selector,
                  "ports": [{"name": f"p{port}", "port": port, "protocol": "TCP", "targetPort": target} for port, target in ports], **spec},
        )  # fmt: skip
        self.add("Endpoints", name)
        self.connect(name)
        return made

    def connect(self, name: str) -> None:
        """Write the endpoints of a service anew, as its controller does."""
        spec = self.of("Service", name)[0]["spec"]
        chosen = [
            each for each in self.of("Pod")
            if spec.get("selector") and spec["selector"].items() <= each["metadata"].get("labels", {}).items() and each["status"]["phase"] == "Running"
        ]  # fmt: skip
        by_ready = {state: [each for each in chosen if is_ready(each) is state] for state in (True, False)}
        named = {
            each.get("name"): each["containerPort"]
            for pod in chosen
            for one in pod["spec"]["containers"]
            for each in one.get("ports", ())
        }
        subset: Object = {
            key: [{"ip": pod["status"]["podIP"], "targetRef": {"kind": "Pod", "name": pod["metadata"]["name"]}} for pod in by_ready[state]]
            for key, state in (("addresses", True), ("notReadyAddresses", False)) if by_ready[state]
        }  # fmt: skip
        subset["ports"] = [
            {"name": each["name"], "port": named.get(each["targetPort"], each["targetPort"]), "protocol": each["protocol"]} for each in spec["ports"]
        ]  # fmt: skip
        self.of("Endpoints", name)[0]["subsets"] = [subset] if chosen else []

    def event(
        self, kind: str, name: str, reason: str, message: str, at: float, *, warning: bool = True, count: int = 1
    ) -> Object:
        return self.add(
            "Event", f"{name}.{self.generated(12)}", created=at, involvedObject={"kind": kind, "name": name, "namespace": self.namespace},
            type="Warning" if warning else "Normal", reason=reason, message=message, count=count, firstTimestamp=iso(at - 20 * count), lastTimestamp=iso(at),
            source={"component": "kubelet"},
        )  # fmt: skip

    def traffic(self, app: str = "", *, container_name: str = "") -> None:
        """Give every pod of an app an ordinary log of requests."""
        for pod in self.pods(app or self.service):
            rows = [(at, "INFO", self.request()) for at in self.moments(-90 * MINUTE, LOOK - 5, 45)]
            self.pod_logs[pod["metadata"]["name"], container_name or pod["spec"]["containers"][0]["name"]] = rows

    def moments(self, start: float, end: float, every: float) -> list[float]:
        times: list[float] = []
        at = start + self.random.random() * every
        while at < end:
            times.append(round(at, 3))
            at += every * (0.6 + 0.8 * self.random.random())
        return times

    def request(self) -> str:
        verb, path = (
            self.random.choice(("GET", "PUT", "POST")),
            self.random.choice(("/v1/items", "/v1/items/7741", "/healthz", "/v2/lists")),
        )
        return f"{verb} {path} 200 {self.random.randrange(9, 70)}ms req={self.random.randrange(16**8):08x}"

    def logged(
        self,
        text: str,
        *,
        app: str = "",
        since: float = -2 * MINUTE,
        until: float = LOOK - 5,
        every: float = 8,
        level: str = "ERROR",
    ) -> None:
        """Add a message to the logs of an app's pods, or to the service's own log if it has no pods."""
        targets = [
            self.pod_logs.setdefault((each["metadata"]["name"], each["spec"]["containers"][0]["name"]), [])
            for each in self.pods(app or self.service)
        ]
        for rows in targets or [self.logs.setdefault(app or self.service, [])]:
            rows += [(at, level, text) for at in self.moments(since, until, every)]
            rows.sort(key=lambda row: row[0])

    def series(
        self,
        metric: str,
        usual: float,
        *,
        noise: float = 0.05,
        app: str = "",
        moved: tuple[float, float, float] | None = None,
    ) -> list[float]:
        """Add a metric by the minute from two hours before; `moved` is (from, until, value) in seconds."""
        values = [usual * (1 + noise * self.random.uniform(-1, 1)) for _ in range(-120, 3)]
        for number, minute in enumerate(range(-120, 3)):
            if moved and moved[0] <= minute * MINUTE <= moved[1]:
                values[number] = moved[2] * (1 + noise * self.random.uniform(-1, 1))
        self.metrics.setdefault(app or self.service, {})[metric] = values
        return values

    def change(
        self,
        title: str,
        at: float,
        *,
        kind: str = "commit",
        app: str = "",
        files: tuple[str, ...] = (),
        diff: str = "",
        detail: str = "",
    ) -> None:
        self.changes.append(
            {"id": f"{self.random.randrange(16**8):08x}", "at": iso(at), "kind": kind, "service": app or self.service, "author": "dana", "title": title,
             "files": list(files), "diff": diff, "detail": detail}
        )  # fmt: skip


def container(name: str, port: int | None = None, **more: Any) -> Object:
    ports = {"ports": [{"containerPort": port, "name": "http", "protocol": "TCP"}]} if port else {}
    return {"name": name, "image": f"registry.example/{name}:1.7.3", **ports,
            "resources": {"limits": {"memory": "512Mi"}, "requests": {"cpu": "150m", "memory": "256Mi"}}, **more}  # fmt: skip


def running(
    name: str, since: float = -3 * DAY, *, ready: bool = True, restarts: int = 0, last: Object | None = None
) -> Object:
    return {"name": name, "image": f"registry.example/{name}:1.7.3", "ready": ready, "restartCount": restarts,
            "state": {"running": {"startedAt": iso(since)}}, "lastState": {"terminated": last} if last else {}}  # fmt: skip


def waiting(name: str, reason: str, message: str = "", *, restarts: int = 0, last: Object | None = None) -> Object:
    return {"name": name, "image": f"registry.example/{name}:1.7.3", "ready": False, "restartCount": restarts,
            "state": {"waiting": {"reason": reason} | ({"message": message} if message else {})}, "lastState": {"terminated": last} if last else {}}  # fmt: skip


def ended(reason: str, code: int, at: float, lasted: float = 60) -> Object:
    return {"reason": reason, "exitCode": code, "startedAt": iso(at - lasted), "finishedAt": iso(at)}


def is_ready(pod: Object) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"]["conditions"])


def unready(pod: Object, statuses: list[Object], *, phase: str = "Running", at: float = -5 * MINUTE) -> None:
    """Give a pod these container statuses, and take its readiness away."""
    pod["status"] |= {"phase": phase, "containerStatuses": statuses}
    pod["status"]["conditions"] = [_condition("Ready", "False", "ContainersNotReady", "", at)]


def crash_loop(
    world: World, pod: Object, name: str, last: Object, *, restarts: int, beside: Sequence[Object] = ()
) -> None:
    """Make a container that ended like `last` again and again, in a pod with the other containers `beside` it."""
    back_off = waiting(
        name, "CrashLoopBackOff", "back-off 2m40s restarting failed container", restarts=restarts, last=last
    )
    unready(pod, [back_off, *beside])
    pod_name = pod["metadata"]["name"]
    message = f"Back-off restarting failed container {name} in pod {pod_name}"
    world.event("Pod", pod_name, "BackOff", message, 150, count=2 * restarts)


def pending(world: World, pod: Object, message: str, at: float = -6 * MINUTE) -> None:
    """Make a pod that no node takes, with the event that says why."""
    pod["status"] = {
        "phase": "Pending",
        "conditions": [_condition("PodScheduled", "False", "Unschedulable", message, at)],
    }
    pod["spec"].pop("nodeName", None)
    pod["metadata"]["creationTimestamp"] = iso(at)
    world.event("Pod", pod["metadata"]["name"], "FailedScheduling", message, 60, count=4)


def short(world: World, app: str, ready: int) -> None:
    """Set how many of a workload's replicas are ready, and write its endpoints anew."""
    for kind in ("Deployment", "StatefulSet"):
        for each in world.of(kind, app):
            each["status"] |= {
                "readyReplicas": ready,
                "availableReplicas": ready,
                "unavailableReplicas": each["spec"]["replicas"] - ready,
            }
    for each in world.of("ReplicaSet"):
        if any(owner["name"] == app for owner in each["metadata"]["ownerReferences"]):
            each["status"] |= {"readyReplicas": ready}
    if world.of("Service", app):
        world.connect(app)


def _condition(kind: str, status: str, reason: str, message: str, since: float = -3 * DAY) -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": iso(since)}
