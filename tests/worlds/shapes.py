"""Shapes of worlds: ordinary healthy ones, and their twins, which have the same names, alert and noise, and one fault."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from math import sin

from tests.worlds.world import (
    DAY,
    HOUR,
    LOOK,
    MINUTE,
    Truth,
    World,
    container,
    crash_loop,
    ended,
    is_ready,
    iso,
    pending,
    running,
    short,
    unready,
    waiting,
)

Build = Callable[[World], None]


@dataclass(frozen=True)
class Shape:
    """A healthy world, and its faulty twins by their names."""

    name: str
    family: str
    build: Build
    twins: tuple[tuple[str, Build], ...] = ()


SHAPES: dict[str, Shape] = {}


def healthy(family: str) -> Callable[[Build], Build]:
    def declare(build: Build) -> Build:
        SHAPES[build.__name__] = Shape(build.__name__, family, build)
        return build

    return declare


def twin(of: Build) -> Callable[[Build], Build]:
    """Declare a fault that happens to the world of a healthy shape."""

    def declare(fault: Build) -> Build:
        shape = SHAPES[of.__name__]

        def build(world: World) -> None:
            of(world)
            fault(world)

        SHAPES[of.__name__] = Shape(shape.name, shape.family, shape.build, (*shape.twins, (fault.__name__, build)))
        return fault

    return declare


def world_of(name: str, twin_name: str = "", seed: int = 0) -> World:
    shape = SHAPES[name]
    world = World(seed)
    (dict(shape.twins)[twin_name] if twin_name else shape.build)(world)
    return world


def _nodes(w: World, count: int = 3) -> None:
    for number in range(1, count + 1):
        w.node(f"node-{number}")


def _base(w: World, *, port: int = 8080, **more: object) -> None:
    """Add three nodes, the service and its caller, with ordinary traffic."""
    _nodes(w)
    w.app(w.service, port=port, **more)  # type: ignore[arg-type]
    w.app(w.caller, port=8081)
    w.traffic()
    w.traffic(w.caller)


def _refused(w: World, where: str, *, app: str = "") -> None:
    w.logged(f"{w.service} call failed: dial tcp {where}: connect: connection refused", app=app or w.caller)


def _first(w: World, app: str = "") -> dict[str, object]:
    return w.pods(app or w.service)[0]


def _named(w: World, number: int = 0, app: str = "") -> str:
    return str(w.pods(app or w.service)[number]["metadata"]["name"])


# ---------------------------------------------------------------------------------------------------------- ports
@healthy("ports")
def undeclared_port(w: World) -> None:
    _base(w, containers=[container(w.service)])


@twin(undeclared_port)
def target_port_refuses(w: World) -> None:
    w.of("Service", w.service)[0]["spec"]["ports"][0]["targetPort"] = 8989
    w.connect(w.service)
    _refused(w, "10.96.1.7:80->8989")
    w.truth = Truth((w.service, r"8989|target ?port"), shown_by=("readers", "text", "json"))


@healthy("ports")
def only_metrics_declared(w: World) -> None:
    one = container(w.service)
    one["ports"] = [{"containerPort": 9102, "name": "metrics", "protocol": "TCP"}]
    one["readinessProbe"] = {
        "httpGet": {"path": "/ready", "port": 8080},
        "periodSeconds": 10,
        "failureThreshold": 3,
        "timeoutSeconds": 1,
    }
    _base(w, containers=[one])


@twin(only_metrics_declared)
def readiness_probe_asks_another_port(w: World) -> None:
    for each in w.of("Deployment", w.service) + w.of("ReplicaSet"):
        for one in each["spec"]["template"]["spec"]["containers"]:
            if "readinessProbe" in one:
                one["readinessProbe"]["httpGet"]["port"] = 8181
    for pod in w.pods():
        pod["spec"]["containers"][0]["readinessProbe"]["httpGet"]["port"] = 8181
        unready(pod, [running(w.service, -20 * MINUTE, ready=False)])
        w.event(
            "Pod",
            pod["metadata"]["name"],
            "Unhealthy",
            f'Readiness probe failed: Get "http://{pod["status"]["podIP"]}:8181/ready": dial tcp {pod["status"]["podIP"]}:8181: connect: connection refused',
            150,
            count=60,
        )
    short(w, w.service, 0)
    _refused(w, "10.96.1.7:80")
    w.truth = Truth((w.service, r"readiness|probe", r"8181|probe"))


@healthy("ports")
def named_target_port(w: World) -> None:
    _base(w, target="http")


@twin(named_target_port)
def target_name_of_no_port(w: World) -> None:
    w.of("Service", w.service)[0]["spec"]["ports"][0]["targetPort"] = "web"
    w.of("Endpoints", w.service)[0]["subsets"] = []
    _refused(w, "10.96.1.7:80")
    w.truth = Truth((w.service, r"web|target ?port|no (?:ready )?endpoint"))


@healthy("ports")
def udp_and_tcp_on_one_number(w: World) -> None:
    one = container(w.service)
    one["ports"] = [
        {"containerPort": 5353, "name": "dns", "protocol": "UDP"},
        {"containerPort": 5353, "name": "dns-tcp", "protocol": "TCP"},
    ]
    _base(w, containers=[one], service=False)
    w.service_for(w.service, {"app": w.service}, [(53, 5353)])
    w.of("Service", w.service)[0]["spec"]["ports"].append(
        {"name": "udp", "port": 53, "protocol": "UDP", "targetPort": 5353}
    )
    w.connect(w.service)


@healthy("ports")
def headless_service(w: World) -> None:
    _base(w, kind="StatefulSet", service=False)
    w.service_for(w.service, {"app": w.service}, [(8080, 8080)], clusterIP="None")


@healthy("ports")
def external_name(w: World) -> None:
    _base(w)
    w.add(
        "Service",
        f"{w.other}-db",
        spec={"type": "ExternalName", "externalName": "db.example.net"},
        metadata={"labels": {}},
    )


@healthy("ports")
def service_without_selector(w: World) -> None:
    _base(w)
    w.add(
        "Service",
        f"{w.other}-legacy",
        spec={
            "type": "ClusterIP",
            "clusterIP": "10.96.3.3",
            "ports": [{"name": "sql", "port": 5432, "protocol": "TCP", "targetPort": 5432}],
        },
    )
    w.add(
        "Endpoints",
        f"{w.other}-legacy",
        subsets=[{"addresses": [{"ip": "192.168.3.9"}], "ports": [{"name": "sql", "port": 5432, "protocol": "TCP"}]}],
    )


@healthy("ports")
def service_of_a_finished_migration(w: World) -> None:
    _base(w)
    w.service_for(f"{w.other}-old", {"app": f"{w.other}-old"}, [(80, 8080)])


@twin(service_of_a_finished_migration)
def selector_of_no_pod(w: World) -> None:
    w.of("Service", w.service)[0]["spec"]["selector"] = {"app": f"{w.service}-v2"}
    w.connect(w.service)
    _refused(w, "10.96.1.7:80")
    w.truth = Truth((w.service, r"selector|selects|no (?:ready )?(?:endpoint|pod)"), (f"{w.other}-old",))


@healthy("ports")
def grpc_probe_on_another_port(w: World) -> None:
    one = container(w.service, 50051)
    one["livenessProbe"] = {"grpc": {"port": 50052}, "periodSeconds": 10, "failureThreshold": 3, "timeoutSeconds": 1}
    _base(w, containers=[one], port=50051)


@twin(grpc_probe_on_another_port)
def impatient_liveness_probe(w: World) -> None:
    for pod in w.pods():
        pod["spec"]["containers"][0]["livenessProbe"] |= {
            "initialDelaySeconds": 0,
            "periodSeconds": 1,
            "failureThreshold": 1,
        }
        crash_loop(w, pod, w.service, ended("Error", 137, 120, 20), restarts=9)
        name = pod["metadata"]["name"]
        w.event(
            "Pod",
            name,
            "Unhealthy",
            'Liveness probe failed: timeout: failed to connect service "10.1.0.9:50052" within 1s: context deadline exceeded',
            140,
            count=9,
        )
        w.event(
            "Pod",
            name,
            "Killing",
            f"Container {w.service} failed liveness probe, will be restarted",
            141,
            warning=False,
            count=9,
        )
    short(w, w.service, 0)
    _refused(w, "10.96.1.7:80")
    w.truth = Truth((w.service, r"liveness|probe"))


# ----------------------------------------------------------------------------------------------------------- mesh
def _with_proxy(w: World, name: str, ports: list[int]) -> list[dict[str, object]]:
    proxy = container(name)
    proxy["ports"] = [{"containerPort": port, "name": f"p{port}", "protocol": "TCP"} for port in ports]
    return [container(w.service), proxy]


@healthy("mesh")
def istio_sidecar(w: World) -> None:
    _base(w, containers=_with_proxy(w, "istio-proxy", [15090]))


@twin(istio_sidecar)
def sidecar_crashes(w: World) -> None:
    for pod in w.pods():
        crash_loop(w, pod, "istio-proxy", ended("Error", 1, 100, 3), restarts=7, beside=[running(w.service)])
        w.previous_logs[pod["metadata"]["name"], "istio-proxy"] = [
            (
                99,
                "ERROR",
                "error initializing configuration: failed to load root certificate: open /etc/certs/root-cert.pem: no such file or directory",
            )
        ]
    short(w, w.service, 0)
    w.truth = Truth((w.service, r"istio-proxy|sidecar|root[- ]cert"))


@healthy("mesh")
def linkerd_sidecar(w: World) -> None:
    _base(w, containers=_with_proxy(w, "linkerd-proxy", [4143, 4191]))


@healthy("mesh")
def native_sidecar(w: World) -> None:
    helper = container("log-shipper")
    helper["restartPolicy"] = "Always"
    _base(w, spec={"initContainers": [helper]})
    for pod in w.pods():
        pod["status"]["initContainerStatuses"] = [running("log-shipper")]


@healthy("mesh")
def sidecar_with_unused_declared_ports(w: World) -> None:
    helper = container("statsd")
    helper["ports"] = [{"containerPort": port, "name": f"u{port}", "protocol": "UDP"} for port in (8125, 9125)]
    _base(w, containers=[container(w.service, 8080), helper])


@twin(sidecar_with_unused_declared_ports)
def sidecar_takes_the_port(w: World) -> None:
    for pod in w.pods():
        name = pod["metadata"]["name"]
        statsd = running("statsd", -16 * MINUTE)
        crash_loop(w, pod, w.service, ended("Error", 1, 110, 2), restarts=6, beside=[statsd])
        w.previous_logs[name, w.service] = [
            (108, "INFO", "starting"),
            (110, "ERROR", "listen tcp :8080: bind: address already in use"),
        ]
        w.pod_logs[name, w.service] = []
    short(w, w.service, 0)
    w.truth = Truth((w.service, r"port.*in use|address already in use"))


# -------------------------------------------------------------------------------------------------------- scaling
@healthy("scaling")
def idle_half_of_blue_green(w: World) -> None:
    _nodes(w)
    green, blue = f"{w.service}-green", f"{w.service}-blue"
    w.app(green, labels={"app": w.service, "slot": "green"}, service=False)
    w.app(blue, labels={"app": w.service, "slot": "blue"}, replicas=0, service=False)
    w.service_for(w.service, {"app": w.service, "slot": "green"}, [(80, 8080)])
    w.apps[w.service] = f"app={w.service}"
    w.app(w.caller, port=8081)
    w.traffic()
    w.traffic(w.caller)


@twin(idle_half_of_blue_green)
def active_half_scaled_to_zero(w: World) -> None:
    green = w.of("Deployment", f"{w.service}-green")[0]
    green["spec"]["replicas"] = 0
    green["status"] = {"conditions": []}
    for each in [*w.pods()]:
        w.objects.remove(each)
    for each in w.of("ReplicaSet"):
        each["spec"]["replicas"] = 0 if each["metadata"]["labels"].get("slot") else each["spec"]["replicas"]
        each["status"] = {"replicas": each["spec"]["replicas"], "readyReplicas": each["spec"]["replicas"]}
    w.pod_logs = {key: rows for key, rows in w.pod_logs.items() if key[0].startswith(w.caller)}
    w.connect(w.service)
    _refused(w, "10.96.1.7:80")
    w.truth = Truth(
        (rf"{w.service}-green|{w.service}.*no endpoint", r"0 replicas|scaled|zero|no (?:ready )?endpoint"),
        (f"{w.service}-blue",),
    )


@healthy("scaling")
def keda_at_zero(w: World) -> None:
    _base(w)
    w.app(f"{w.other}-worker", replicas=0, service=False)
    w.add(
        "ScaledObject",
        f"{w.other}-worker",
        "keda.sh/v1alpha1",
        spec={
            "scaleTargetRef": {"name": f"{w.other}-worker"},
            "minReplicaCount": 0,
            "maxReplicaCount": 20,
            "triggers": [{"type": "rabbitmq"}],
        },
        status={"conditions": [{"type": "Ready", "status": "True"}, {"type": "Active", "status": "False"}]},
    )


@healthy("scaling")
def sleeping_preview(w: World) -> None:
    _base(w)
    w.app(f"{w.service}-pr-412", replicas=0)


@healthy("scaling")
def suspended_cron_job(w: World) -> None:
    _base(w)
    w.add(
        "CronJob",
        f"{w.other}-report",
        "batch/v1",
        spec={"schedule": "0 4 * * *", "suspend": True, "jobTemplate": {}},
        status={"lastScheduleTime": iso(-2 * DAY)},
    )


@healthy("scaling")
def autoscaler_at_rest(w: World) -> None:
    _base(w)
    _hpa(w, current=2, usage=31)


@twin(autoscaler_at_rest)
def autoscaler_at_its_maximum(w: World) -> None:
    w.objects = [each for each in w.objects if each["kind"] != "HorizontalPodAutoscaler"]
    _hpa(w, current=6, usage=188, limited=True)
    w.series("container_cpu_usage", 0.2, moved=(-12 * MINUTE, LOOK, 0.99))
    w.series("http_request_duration_seconds_p95", 0.12, moved=(-11 * MINUTE, LOOK, 3.9))
    w.series("http_requests_per_second", 40, moved=(-12 * MINUTE, LOOK, 240))
    w.truth = Truth((w.service, r"cpu|more requests|load|replica|maximum"))


def _hpa(w: World, *, current: int, usage: int, limited: bool = False) -> None:
    limit = {
        "type": "ScalingLimited",
        "status": "True" if limited else "False",
        "reason": "TooManyReplicas" if limited else "DesiredWithinRange",
        "message": "the desired replica count is more than the maximum replica count"
        if limited
        else "the desired count is within the acceptable range",
    }
    w.add("HorizontalPodAutoscaler", w.service, "autoscaling/v2",
          spec={"scaleTargetRef": {"kind": "Deployment", "name": w.service}, "minReplicas": 2, "maxReplicas": 6},
          status={"currentReplicas": current, "desiredReplicas": current, "conditions": [{"type": "ScalingActive", "status": "True"}, limit],
                  "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": usage}}}]})  # fmt: skip


@healthy("scaling")
def canary_rollout(w: World) -> None:
    _base(w)
    w.add(
        "Rollout",
        f"{w.other}-web",
        "argoproj.io/v1alpha1",
        spec={"replicas": 4},
        status={
            "phase": "Paused",
            "message": "CanaryPauseStep",
            "readyReplicas": 4,
            "availableReplicas": 4,
            "replicas": 4,
        },
    )


@healthy("scaling")
def daemon_set_on_chosen_nodes(w: World) -> None:
    _base(w)
    counts = {
        "desiredNumberScheduled": 2,
        "currentNumberScheduled": 2,
        "numberReady": 2,
        "numberAvailable": 2,
        "updatedNumberScheduled": 2,
    }
    w.add(
        "DaemonSet",
        "gpu-agent",
        "apps/v1",
        spec={
            "selector": {"matchLabels": {"app": "gpu-agent"}},
            "template": {
                "metadata": {"labels": {"app": "gpu-agent"}},
                "spec": {"containers": [container("gpu-agent")], "nodeSelector": {"gpu": "true"}},
            },
        },
        status=counts,
    )


@healthy("scaling")
def disruption_budget_without_room(w: World) -> None:
    _base(w)
    w.add(
        "PodDisruptionBudget",
        w.service,
        "policy/v1",
        spec={"minAvailable": 2, "selector": {"matchLabels": {"app": w.service}}},
        status={"disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 2},
    )


@healthy("scaling")
def scaled_down_an_hour_ago(w: World) -> None:
    _base(w)
    w.event(
        "Deployment",
        w.service,
        "ScalingReplicaSet",
        f"Scaled down replica set {w.service}-7d9 to 2 from 4",
        -65 * MINUTE,
        warning=False,
    )


# -------------------------------------------------------------------------------------------------------- history
@healthy("history")
def killed_for_memory_last_week(w: World) -> None:
    _base(w)
    for pod in w.pods()[:1]:
        pod["status"]["containerStatuses"] = [
            running(w.service, -6 * DAY, restarts=1, last=ended("OOMKilled", 137, -6 * DAY))
        ]


@twin(killed_for_memory_last_week)
def killed_for_memory_now(w: World) -> None:
    for pod in w.pods():
        pod["status"]["containerStatuses"] = [running(w.service, 20, restarts=5, last=ended("OOMKilled", 137, 15, 240))]
        w.previous_logs[pod["metadata"]["name"], w.service] = [(10, "INFO", w.request())]
    _refused(w, "10.96.1.7:80")
    w.truth = Truth((w.service, r"memory|OOM"))


@twin(killed_for_memory_last_week)
def cache_raised_above_the_memory_limit(w: World) -> None:
    for each in w.pods():
        crash_loop(w, each, w.service, ended("OOMKilled", 137, 100, 30), restarts=6)
    short(w, w.service, 0)
    w.change(
        "raise the cache to a million entries",
        -9 * MINUTE,
        files=("src/cache.py",),
        diff="--- a/src/cache.py\n+++ b/src/cache.py\n-CACHE_ENTRIES = 5000\n+CACHE_ENTRIES = 1000000\n",
    )
    w.truth = Truth((r"memory|OOM", r"cache"), shown_by=("readers",))


@healthy("history")
def restarts_three_weeks_ago(w: World) -> None:
    _base(w, age=-30 * DAY)
    for pod in w.pods():
        pod["status"]["containerStatuses"] = [
            running(w.service, -21 * DAY, restarts=4, last=ended("Error", 1, -21 * DAY))
        ]


@twin(restarts_three_weeks_ago)
def crashes_without_a_log(w: World) -> None:
    for each in w.pods():
        name = each["metadata"]["name"]
        crash_loop(w, each, w.service, ended("Error", 1, 60, 2), restarts=11)
        w.pod_logs[name, w.service] = []
    short(w, w.service, 0)
    w.truth = Truth((w.service, r"exit(?:ed|s)?\b.*\b1\b|crash|restart"))


@twin(restarts_three_weeks_ago)
def segmentation_fault(w: World) -> None:
    for each in w.pods():
        crash_loop(w, each, w.service, ended("Error", 139, 60, 30), restarts=8)
        w.previous_logs[each["metadata"]["name"], w.service] = [(50, "INFO", w.request()), (59, "INFO", w.request())]
    short(w, w.service, 0)
    w.truth = Truth((w.service, r"139|segmentation|SIGSEGV|crash"))


@healthy("history")
def evicted_two_days_ago(w: World) -> None:
    _base(w)
    for _ in range(3):
        name = f"{w.service}-{w.generated(9)}-{w.generated(5)}"
        pod = w.pod(
            name, [container(w.service)], {"app": w.service}, age=-4 * DAY, phase="Failed", statuses=[], ready=False
        )
        pod["status"] |= {
            "reason": "Evicted",
            "message": "The node was low on resource: ephemeral-storage.",
            "conditions": [
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "lastTransitionTime": iso(-2 * DAY),
                    "reason": "TerminationByKubelet",
                    "message": "",
                }
            ],
        }
    w.connect(w.service)


@twin(evicted_two_days_ago)
def evicted_now_and_no_room(w: World) -> None:
    for pod in w.pods():
        if pod["status"]["phase"] == "Running":
            pod["status"] = {
                "phase": "Failed",
                "reason": "Evicted",
                "message": "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 8Gi.",
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "False",
                        "lastTransitionTime": iso(-3 * MINUTE),
                        "reason": "",
                        "message": "",
                    }
                ],
            }
            w.event(
                "Pod",
                pod["metadata"]["name"],
                "Evicted",
                "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 8Gi.",
                -3 * MINUTE,
            )
    for node in w.of("Node"):
        for each in node["status"]["conditions"]:
            if each["type"] == "DiskPressure":
                each |= {
                    "status": "True",
                    "reason": "KubeletHasDiskPressure",
                    "message": "kubelet has disk pressure",
                    "lastTransitionTime": iso(-4 * MINUTE),
                }
    short(w, w.service, 0)
    _refused(w, "10.96.1.7:80")
    w.truth = Truth((r"ephemeral-storage|disk|evict",))


@healthy("history")
def job_that_needed_three_attempts(w: World) -> None:
    _base(w)
    _job(w, failed=2, done=True)


@twin(job_that_needed_three_attempts)
def job_that_failed(w: World) -> None:
    w.objects = [each for each in w.objects if not str(each["metadata"]["name"]).startswith(f"{w.service}-sync")]
    _job(w, failed=4, done=False)
    w.alert |= {"name": "JobFailed", "summary": f"Job {w.service}-sync failed", "description": ""}
    for pod in w.of("Pod"):
        if pod["status"]["phase"] == "Failed":
            w.pod_logs[pod["metadata"]["name"], "sync"] = [
                (-40, "INFO", "sync of 412 items"),
                (-35, "ERROR", "cannot write result: disk quota exceeded on /export"),
            ]
    w.truth = Truth((r"quota|export",))


def _job(w: World, *, failed: int, done: bool) -> None:
    name, labels = f"{w.service}-sync", {"job-name": f"{w.service}-sync", "app": w.service}
    condition = (
        {"type": "Complete", "status": "True"}
        if done
        else {
            "type": "Failed",
            "status": "True",
            "reason": "BackoffLimitExceeded",
            "message": "Job has reached the specified backoff limit",
        }
    )
    end = -50 * MINUTE if done else -30.0
    w.add(
        "Job",
        name,
        "batch/v1",
        created=end - 600,
        metadata={"labels": labels},
        spec={"backoffLimit": 4, "completions": 1},
        status={"succeeded": int(done), "failed": failed, "conditions": [condition | {"lastTransitionTime": iso(end)}]},
    )
    for number in range(failed + done):
        good = done and number == failed
        state = {
            "name": "sync",
            "ready": False,
            "restartCount": 0,
            "image": "registry.example/sync:2",
            "state": {
                "terminated": ended("Completed" if good else "Error", 0 if good else 1, end - 60 * (failed - number))
            },
            "lastState": {},
        }
        w.pod(
            f"{name}-{w.generated(5)}",
            [container("sync")],
            labels,
            {"kind": "Job", "name": name},
            age=end - 600,
            phase="Succeeded" if good else "Failed",
            statuses=[state],
            ready=False,
        )
    if not done:
        w.event("Job", name, "BackoffLimitExceeded", "Job has reached the specified backoff limit", end)
    if w.of("Service", w.service):
        w.connect(w.service)


@healthy("history")
def slow_start_74_minutes_ago(w: World) -> None:
    _base(w, age=-75 * MINUTE)
    for pod in w.pods():
        w.event(
            "Pod",
            pod["metadata"]["name"],
            "Unhealthy",
            f'Readiness probe failed: Get "http://{pod["status"]["podIP"]}:8080/ready": dial tcp: connect: connection refused',
            -74 * MINUTE,
            count=4,
        )


@healthy("history")
def scheduled_after_a_while(w: World) -> None:
    _base(w, age=-58 * MINUTE)
    w.event("Pod", _named(w), "FailedScheduling", "0/3 nodes are available: 3 Insufficient cpu.", -57 * MINUTE, count=3)
    w.event(
        "Pod",
        _named(w),
        "Scheduled",
        f"Successfully assigned {w.namespace}/{_named(w)} to node-1",
        -55 * MINUTE,
        warning=False,
    )


@twin(scheduled_after_a_while)
def no_node_has_the_cpu(w: World) -> None:
    for pod in w.pods():
        pending(
            w,
            pod,
            "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.",
        )
    w.pod_logs = {key: rows for key, rows in w.pod_logs.items() if key[0].startswith(w.caller)}
    short(w, w.service, 0)
    _refused(w, "10.96.1.7:80")
    w.truth = Truth((w.service, r"cpu"))


@twin(scheduled_after_a_while)
def nodes_are_cordoned(w: World) -> None:
    for node in w.of("Node"):
        node["spec"]["unschedulable"] = True
    pending(
        w,
        w.pods()[0],
        "0/3 nodes are available: 3 node(s) were unschedulable. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
    )
    pending(
        w,
        w.pods()[1],
        "0/3 nodes are available: 3 node(s) were unschedulable. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
    )
    short(w, w.service, 0)
    w.truth = Truth((r"cordon|unschedulable",))


@twin(scheduled_after_a_while)
def no_node_has_the_label(w: World) -> None:
    for each in w.of("Deployment", w.service):
        each["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "nvme"}
    for pod in w.pods():
        pod["spec"]["nodeSelector"] = {"disk": "nvme"}
        pending(
            w,
            pod,
            "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
        )
    short(w, w.service, 0)
    w.truth = Truth((w.service, r"label|selector|affinity"))


@twin(scheduled_after_a_while)
def taint_is_not_tolerated(w: World) -> None:
    for node in w.of("Node"):
        node["spec"]["taints"] = [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]
    for pod in w.pods():
        pending(
            w,
            pod,
            "0/3 nodes are available: 3 node(s) had untolerated taint {dedicated: batch}. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
        )
    short(w, w.service, 0)
    w.truth = Truth((r"taint",))


@healthy("history")
def image_pulled_at_the_third_attempt(w: World) -> None:
    _base(w, age=-3 * HOUR)
    w.event(
        "Pod",
        _named(w),
        "Failed",
        'Failed to pull image "registry.example/x:1.7.3": rpc error: code = Unknown desc = context deadline exceeded',
        -3 * HOUR + 40,
    )
    w.event("Pod", _named(w), "BackOff", 'Back-off pulling image "registry.example/x:1.7.3"', -3 * HOUR + 60)
    w.event(
        "Pod",
        _named(w),
        "Pulled",
        'Successfully pulled image "registry.example/x:1.7.3"',
        -3 * HOUR + 90,
        warning=False,
    )


def _image_fault(w: World, message: str) -> None:
    image = f"registry.example/{w.service}:1.8.0-rc"
    for pod in w.pods():
        name = pod["metadata"]["name"]
        unready(pod, [waiting(w.service, "ImagePullBackOff", f'Back-off pulling image "{image}"')], phase="Pending")
        w.event("Pod", name, "Failed", f'Failed to pull image "{image}": {message}', 100, count=4)
        w.event("Pod", name, "Failed", "Error: ImagePullBackOff", 120, count=8)
        w.event("Pod", name, "BackOff", f'Back-off pulling image "{image}"', 140, count=9)
    w.pod_logs = {key: rows for key, rows in w.pod_logs.items() if key[0].startswith(w.caller)}
    short(w, w.service, 0)
    _refused(w, "10.96.1.7:80")


@twin(image_pulled_at_the_third_attempt)
def image_does_not_exist(w: World) -> None:
    _image_fault(
        w,
        f'rpc error: code = NotFound desc = failed to pull and unpack image: failed to resolve reference "registry.example/{w.service}:1.8.0-rc": not found',
    )
    w.truth = Truth((w.service, r"image", r"exist|not found"), (r"registry(?: itself)? is (?:failing|down)",))


@twin(image_pulled_at_the_third_attempt)
def registry_refuses_the_login(w: World) -> None:
    _image_fault(
        w,
        "rpc error: code = Unknown desc = failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized",
    )
    w.truth = Truth((w.service, r"credential|refuse|401|unauthori"))


@healthy("history")
def node_that_came_back(w: World) -> None:
    _base(w)
    w.event("Node", "node-2", "NodeNotReady", "Node node-2 status is now: NodeNotReady", -5 * HOUR, warning=False)
    w.event("Node", "node-2", "NodeReady", "Node node-2 status is now: NodeReady", -5 * HOUR + 120, warning=False)


@twin(node_that_came_back)
def node_is_lost(w: World) -> None:
    lost = w.of("Node", "node-2")[0]
    lost["status"]["conditions"][-1] |= {
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": iso(-4 * MINUTE),
    }
    for pod in w.pods() + w.pods(w.caller):
        if pod["spec"].get("nodeName") == "node-2":
            unready(pod, pod["status"]["containerStatuses"], at=-4 * MINUTE)
    w.event("Node", "node-2", "NodeNotReady", "Node node-2 status is now: NodeNotReady", -4 * MINUTE, warning=False)
    short(w, w.service, sum(is_ready(each) for each in w.pods()))
    w.truth = Truth((r"node-2",))


@healthy("history")
def rolled_out_yesterday(w: World) -> None:
    _base(w, age=-20 * HOUR)
    labels = {"app": w.service}
    w.add(
        "ReplicaSet",
        f"{w.service}-{w.generated(9)}",
        "apps/v1",
        created=-5 * DAY,
        metadata={"labels": labels, "ownerReferences": [{"kind": "Deployment", "name": w.service}]},
        spec={
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container(w.service)]}},
        },
        status={"replicas": 0},
    )
    w.change("release 1.7.3", -20 * HOUR, kind="deploy")


@healthy("history")
def restarted_by_yesterdays_deploy(w: World) -> None:
    _base(w)
    for pod in w.pods():
        pod["status"]["containerStatuses"] = [running(w.service, -DAY, restarts=1, last=ended("Completed", 0, -DAY))]


# --------------------------------------------------------------------------------------------------------- policy
@healthy("policy")
def network_policy_that_allows(w: World) -> None:
    _base(w)
    w.add(
        "NetworkPolicy",
        f"{w.service}-in",
        "networking.k8s.io/v1",
        spec={
            "podSelector": {"matchLabels": {"app": w.service}},
            "policyTypes": ["Ingress"],
            "ingress": [
                {
                    "from": [{"podSelector": {"matchLabels": {"app": w.caller}}}],
                    "ports": [{"port": 8080, "protocol": "TCP"}],
                }
            ],
        },
    )


@healthy("policy")
def quota_with_a_little_room(w: World) -> None:
    _base(w)
    w.add(
        "ResourceQuota",
        "team",
        spec={"hard": {"pods": "5", "requests.cpu": "4"}},
        status={"hard": {"pods": "5", "requests.cpu": "4"}, "used": {"pods": "4", "requests.cpu": "600m"}},
    )


@healthy("policy")
def quota_used_to_the_last_pod(w: World) -> None:
    _base(w)
    w.add("ResourceQuota", "team", spec={"hard": {"pods": "4"}}, status={"hard": {"pods": "4"}, "used": {"pods": "4"}})


@twin(quota_used_to_the_last_pod)
def quota_refuses_the_pods(w: World) -> None:
    gone = w.pods()
    for pod in gone:
        w.objects.remove(pod)
    w.pod_logs = {key: rows for key, rows in w.pod_logs.items() if key[0].startswith(w.caller)}
    rs = next(each for each in w.of("ReplicaSet") if each["metadata"]["name"].startswith(w.service))
    w.of("ResourceQuota", "team")[0]["status"]["used"] = {"pods": "4"}
    w.event(
        "ReplicaSet",
        rs["metadata"]["name"],
        "FailedCreate",
        f'Error creating: pods "{rs["metadata"]["name"]}-x2x4z" is forbidden: exceeded quota: team, requested: pods=1, used: pods=4, limited: pods=4',
        100,
        count=9,
    )
    short(w, w.service, 0)
    _refused(w, "10.96.1.7:80")
    w.truth = Truth((r"quota", r"pods"), (r"FailedCreate.{0,3} is failing",))


@healthy("policy")
def node_cordoned_for_maintenance(w: World) -> None:
    _base(w)
    w.node("node-9", unschedulable=True)


@healthy("policy")
def tainted_pool(w: World) -> None:
    _base(w)
    w.node("gpu-1", taints=[{"key": "gpu", "value": "true", "effect": "NoSchedule"}])


def _waiting_claim(w: World, name: str, size: str, storage_class: str) -> None:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
        "storageClassName": storage_class,
    }
    w.add("PersistentVolumeClaim", name, spec=spec, status={"phase": "Pending"})


@healthy("policy")
def claim_that_waits_for_its_first_pod(w: World) -> None:
    _base(w)
    w.add(
        "StorageClass",
        "local",
        "storage.k8s.io/v1",
        namespaced=False,
        provisioner="kubernetes.io/no-provisioner",
        reclaimPolicy="Delete",
        volumeBindingMode="WaitForFirstConsumer",
    )
    _waiting_claim(w, f"{w.other}-scratch", "5Gi", "local")
    w.event(
        "PersistentVolumeClaim",
        f"{w.other}-scratch",
        "WaitForFirstConsumer",
        "waiting for first consumer to be created before binding",
        100,
        warning=False,
        count=40,
    )


@twin(claim_that_waits_for_its_first_pod)
def claim_of_a_class_that_does_not_exist(w: World) -> None:
    _waiting_claim(w, f"{w.service}-data", "20Gi", "fast-ssd")
    w.event(
        "PersistentVolumeClaim",
        f"{w.service}-data",
        "ProvisioningFailed",
        'storageclass.storage.k8s.io "fast-ssd" not found',
        120,
        count=12,
    )
    for each in w.of("Deployment", w.service):
        each["spec"]["template"]["spec"]["volumes"] = [
            {"name": "data", "persistentVolumeClaim": {"claimName": f"{w.service}-data"}}
        ]
    for pod in w.pods():
        pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": f"{w.service}-data"}}]
        pending(
            w,
            pod,
            "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
        )
    short(w, w.service, 0)
    w.truth = Truth((rf"{w.service}-data", r"fast-ssd|storage ?class"))


@healthy("policy")
def optional_configuration_is_absent(w: World) -> None:
    one = container(w.service, 8080)
    one["env"] = [
        {"name": "FEATURES", "valueFrom": {"configMapKeyRef": {"name": "features", "key": "list", "optional": True}}}
    ]
    _base(w, containers=[one])


@twin(optional_configuration_is_absent)
def secret_is_absent(w: World) -> None:
    for pod in w.pods():
        pod["spec"]["containers"][0]["env"] = [
            {"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": f"{w.service}-db", "key": "password"}}}
        ]
        unready(
            pod,
            [waiting(w.service, "CreateContainerConfigError", f'secret "{w.service}-db" not found')],
            phase="Pending",
        )
        w.event("Pod", pod["metadata"]["name"], "Failed", f'Error: secret "{w.service}-db" not found', 130, count=20)
    w.pod_logs = {key: rows for key, rows in w.pod_logs.items() if key[0].startswith(w.caller)}
    short(w, w.service, 0)
    w.truth = Truth((rf"{w.service}-db", r"secret"))


@healthy("policy")
def service_account_of_its_own(w: World) -> None:
    _base(w, spec={"serviceAccountName": f"{w.service}-sa"})
    w.add("ServiceAccount", f"{w.service}-sa")


@twin(service_account_of_its_own)
def service_account_is_absent(w: World) -> None:
    for each in [*w.of("ServiceAccount"), *w.pods()]:
        w.objects.remove(each)
    w.pod_logs = {key: rows for key, rows in w.pod_logs.items() if key[0].startswith(w.caller)}
    rs = next(each for each in w.of("ReplicaSet") if each["metadata"]["name"].startswith(w.service))["metadata"]["name"]
    w.event(
        "ReplicaSet",
        rs,
        "FailedCreate",
        f'Error creating: pods "{rs}-" is forbidden: error looking up service account {w.namespace}/{w.service}-sa: serviceaccount "{w.service}-sa" not found',
        110,
        count=11,
    )
    short(w, w.service, 0)
    w.truth = Truth((rf"{w.service}-sa", r"service ?account"))


# ------------------------------------------------------------------------------------------------- logs, no objects
def _talk(w: World, line: Callable[[int], tuple[str, str]], every: float = 6) -> None:
    for number, at in enumerate(w.moments(-90 * MINUTE, LOOK - 5, every)):
        level, text = line(number)
        w.logs.setdefault(w.service, []).append((at, level, text))


def _json(level: str, at: float = 0, **fields: object) -> str:
    return json.dumps({"level": level, "ts": iso(at), **fields})


@healthy("logs")
def json_with_zero_errors(w: World) -> None:
    words = ("no error in the last window", "timeout budget unused", "request done", "0 retries, 0 failures")
    _talk(w, lambda n: ("INFO", _json("info", msg=words[n % 4], latency_ms=20 + n % 30, errors=0, network_errors=0)))


@twin(json_with_zero_errors)
def database_refuses_connections(w: World) -> None:
    w.logged(
        _json("error", msg="list not read", err="dial tcp 10.9.9.4:5432: connect: connection refused"),
        since=-4 * MINUTE,
        every=5,
    )
    w.truth = Truth((r"5432|database|refused",))


@twin(json_with_zero_errors)
def database_password_is_refused(w: World) -> None:
    w.logged(
        _json("error", msg="cannot open the pool", err=f'FATAL: password authentication failed for user "{w.service}"'),
        since=-4 * MINUTE,
        every=5,
    )
    w.truth = Truth((r"password|credential",))


@healthy("logs")
def settings_with_a_timeout(w: World) -> None:
    _talk(
        w,
        lambda n: ("INFO", f"config reload ok: timeout=30s max_retries=5 error_budget=0.1% dead_letter=off item={n}"),
        every=30,
    )


@twin(settings_with_a_timeout)
def callee_times_out(w: World) -> None:
    w.dependencies[w.service] = (w.other,)
    w.logged(
        f"POST http://{w.other}/v1/price: context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
        since=-3 * MINUTE,
        every=4,
    )
    w.logs[w.other] = [
        (at, "WARN", "checkpoint took 9.2 s: the volume answers in 900 ms")
        for at in w.moments(-5 * MINUTE, LOOK - 5, 12)
    ]
    w.truth = Truth((w.other,))


@healthy("logs")
def exception_that_is_caught(w: World) -> None:
    _talk(
        w,
        lambda n: (
            ("DEBUG", "cache miss handled: java.util.NoSuchElementException: no value present, computed instead")
            if n % 9 == 0
            else ("INFO", w.request())
        ),
    )


@twin(exception_that_is_caught)
def exception_after_a_release(w: World) -> None:
    trace = 'java.lang.NullPointerException: Cannot invoke "Price.amount()" because "price" is null\n\tat com.example.cart.PriceTable.total(PriceTable.java:88)\n\tat com.example.cart.Cart.sum(Cart.java:41)'
    w.logged(trace, since=-4 * MINUTE, every=6)
    w.change(
        "allow items without a price",
        -6 * MINUTE,
        kind="deploy",
        files=("src/main/java/com/example/cart/PriceTable.java",),
        diff="--- a/src/main/java/com/example/cart/PriceTable.java\n+++ b/src/main/java/com/example/cart/PriceTable.java\n-        if (price == null) { continue; }\n         sum += price.amount();\n",
    )
    w.change("docs: say how carts are summed", -5 * MINUTE, files=("README.md",), app=w.other)
    w.truth = Truth((r"without a price|PriceTable|NullPointer",), (r"docs: say",))


@healthy("logs")
def retries_that_succeed(w: World) -> None:
    _talk(w, lambda n: ("INFO", f"retry 1 of 3 succeeded for message {n}") if n % 12 == 0 else ("INFO", w.request()))


@healthy("logs")
def clients_that_hang_up(w: World) -> None:
    _talk(
        w,
        lambda n: (
            ("WARN", "write: broken pipe (client closed the connection)") if n % 10 == 0 else ("INFO", w.request())
        ),
    )


@healthy("logs")
def logfmt_with_error_none(w: World) -> None:
    _talk(w, lambda n: ("INFO", f'level=info msg="job done" err=null failed=0 rows={n} status=ok'))


@twin(logfmt_with_error_none)
def disk_is_full(w: World) -> None:
    w.logged(
        'level=error msg="job failed" err="write /var/data/out.tmp: no space left on device"',
        since=-5 * MINUTE,
        every=7,
    )
    w.truth = Truth((r"space|disk",))


@healthy("logs")
def klog_of_a_controller(w: World) -> None:
    _talk(
        w,
        lambda n: (
            "INFO",
            f'I0310 08:{n % 60:02d}:07.123456       1 reconcile.go:88] "Reconciled without error" object="web/{n}" failures=0',
        ),
    )


@healthy("logs")
def few_404_as_always(w: World) -> None:
    _talk(
        w,
        lambda n: (
            "INFO",
            f'10.0.3.{n % 9} - - [10/Mar/2026:08:00:00 +0000] "GET /v1/items/{n} HTTP/1.1" {404 if n % 25 == 0 else 200} 512',
        ),
    )


@twin(few_404_as_always)
def upstream_answers_503(w: World) -> None:
    w.dependencies[w.service] = (w.other,)
    w.logged(f"POST http://{w.other}/charge: 503 Service Unavailable", since=-4 * MINUTE, every=5)
    w.truth = Truth((w.other,))


@healthy("logs")
def errors_as_many_as_always(w: World) -> None:
    _talk(w, lambda n: ("ERROR", f"invalid card number for order {n}") if n % 15 == 0 else ("INFO", w.request()))


@healthy("logs")
def trouble_that_ended(w: World) -> None:
    _talk(w, lambda _: ("INFO", w.request()))
    w.logged("POST http://mailer/send: 503 Service Unavailable", since=-52 * MINUTE, until=-40 * MINUTE, every=5)


@healthy("logs")
def deprecation_warnings(w: World) -> None:
    _talk(
        w,
        lambda n: (
            ("WARN", "deprecated: /v1/items will be removed in 3.0; use /v2/items")
            if n % 6 == 0
            else ("INFO", w.request())
        ),
    )


@healthy("logs")
def circuit_breaker_closed(w: World) -> None:
    _talk(w, lambda n: ("INFO", "circuit breaker state=CLOSED failureRate=0.0% slowCalls=0 timeouts=0"), every=20)


@twin(circuit_breaker_closed)
def certificate_expired(w: World) -> None:
    w.logged(
        'Get "https://partner.example.net/v2": tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-03-10T09:00:00Z is after 2026-03-10T08:57:00Z',
        since=-3 * MINUTE,
        every=6,
    )
    w.truth = Truth((r"certificate",))


@healthy("logs")
def collector_at_work(w: World) -> None:
    _talk(w, lambda n: ("INFO", f"GC(71{n % 9}) Pause Young (Normal) 214M->88M(512M) {3 + n % 5}.1ms"), every=12)


@twin(collector_at_work)
def heap_is_exhausted(w: World) -> None:
    w.logged("java.lang.OutOfMemoryError: Java heap space", since=-3 * MINUTE, every=9)
    w.truth = Truth((r"heap|memory",))


@healthy("logs")
def access_log_of_a_proxy(w: World) -> None:
    _talk(
        w,
        lambda n: (
            "INFO",
            f'{w.service}.example.com "GET /v1/items HTTP/1.1" 200 0 "-" upstream=10.1.2.{n % 9}:8080 rt=0.02',
        ),
    )


@twin(access_log_of_a_proxy)
def proxy_gets_no_answer(w: World) -> None:
    w.dependencies[w.service] = (w.other,)
    w.logged(
        f'2026/03/10 08:59:59 [error] 31#31: *991 connect() failed (111: Connection refused) while connecting to upstream, server: {w.service}.example.com, request: "GET /v1/items HTTP/1.1", upstream: "http://{w.other}:8080/v1/items", host: "{w.service}.example.com"',
        since=-3 * MINUTE,
        every=4,
    )
    w.truth = Truth((w.other,), (rf"{w.service}\.example\.com is failing",))


@healthy("logs")
def reads_from_a_replica(w: World) -> None:
    _talk(w, lambda n: ("INFO", f"read-only replica serves reports, lag=0.2s rows={n}"), every=15)


@twin(reads_from_a_replica)
def store_is_read_only(w: World) -> None:
    w.logged("READONLY You can't write against a read only replica.", since=-3 * MINUTE, every=5)
    w.truth = Truth((r"read[- ]?only",))


@healthy("logs")
def pool_is_at_ease(w: World) -> None:
    _talk(w, lambda n: ("INFO", f"pool active={n % 7} idle={13 - n % 7} waiting=0 max=20 timeouts=0"), every=15)


@twin(pool_is_at_ease)
def pool_lowered_by_a_change(w: World) -> None:
    w.logged(
        "HikariPool-1 - Connection is not available, request timed out after 30001ms (total=4, active=4, idle=0, waiting=31)",
        since=-3 * MINUTE,
        every=5,
    )
    w.change(
        "tidy the settings of the database",
        -7 * MINUTE,
        kind="config",
        files=("config/database.yaml",),
        diff="--- a/config/database.yaml\n+++ b/config/database.yaml\n-  maximumPoolSize: 20\n+  maximumPoolSize: 4\n",
    )
    w.change(
        "log: less noise from the scheduler",
        -4 * MINUTE,
        files=("src/log.py",),
        diff="--- a/src/log.py\n+++ b/src/log.py\n-logger.info('tick')\n+logger.debug('tick')\n",
    )
    w.truth = Truth((r"tidy the settings|maximumPoolSize|pool",), (r"less noise",))


# -------------------------------------------------------------------------------------------------------- metrics
@healthy("metrics")
def season_of_the_day(w: World) -> None:
    values = w.series("http_requests_per_second", 80)
    values[:] = [value * (1 + 0.3 * sin(number / 19)) for number, value in enumerate(values)]
    w.series("http_request_duration_seconds_p95", 0.11)
    _talk(w, lambda _: ("INFO", w.request()))


@twin(season_of_the_day)
def twice_the_requests(w: World) -> None:
    w.series("http_requests_per_second", 80, moved=(-9 * MINUTE, LOOK, 460))
    w.series("http_request_duration_seconds_p95", 0.11, moved=(-8 * MINUTE, LOOK, 2.8))
    w.series("http_errors_per_second", 0.2, moved=(-8 * MINUTE, LOOK, 31))
    w.truth = Truth((r"more requests|load|requests",), shown_by=("readers",))


@healthy("metrics")
def cpu_peak_that_ended(w: World) -> None:
    w.series("container_cpu_usage", 0.3, moved=(-40 * MINUTE, -16 * MINUTE, 0.95))
    w.series("http_request_duration_seconds_p95", 0.11)
    _talk(w, lambda _: ("INFO", w.request()))


@healthy("metrics")
def counter_that_was_reset(w: World) -> None:
    w.metrics[w.service] = {
        "http_requests_total": [(1_000_000 + 4_800 * n) if n < 70 else 4_800 * (n - 70) for n in range(123)]
    }
    w.series("http_request_duration_seconds_p95", 0.11)
    _talk(w, lambda _: ("INFO", w.request()))


@healthy("metrics")
def sawtooth_of_memory(w: World) -> None:
    w.metrics[w.service] = {"jvm_memory_used_bytes": [2e8 + 6e6 * (n % 30) for n in range(123)]}
    _talk(w, lambda _: ("INFO", w.request()))


@healthy("metrics")
def gauge_called_total(w: World) -> None:
    values = w.series("queue_messages_total", 40, noise=0.3)
    values[60:80] = [value / 2 for value in values[60:80]]
    _talk(w, lambda _: ("INFO", w.request()))


@healthy("metrics")
def cache_that_warmed_up(w: World) -> None:
    values = w.series("cache_hit_ratio", 0.93, noise=0.01)
    values[:30] = [0.4 + 0.017 * n for n in range(30)]
    _talk(w, lambda _: ("INFO", w.request()))


@healthy("metrics")
def other_service_in_trouble(w: World) -> None:
    w.series("http_request_duration_seconds_p95", 0.11)
    w.series("http_errors_per_second", 0.1, app=w.other, moved=(-20 * MINUTE, LOOK, 9))
    _talk(w, lambda _: ("INFO", w.request()))


# -------------------------------------------------------------------------------------------------------- changes
@healthy("changes")
def harmless_changes(w: World) -> None:
    _talk(w, lambda _: ("INFO", w.request()))
    w.series("http_errors_per_second", 0.2)
    w.change("docs: how items are rounded", -13 * MINUTE, files=("README.md",))
    w.change("chore(deps-dev): bump prettier from 3.3.3 to 3.4.0", -8 * MINUTE, files=("package.json",))


@twin(harmless_changes)
def switch_of_a_flag(w: World) -> None:
    w.change("new-pricing: off -> on", -6 * MINUTE, kind="flag")
    w.logged("pricing rule new-pricing failed: unknown currency ''", since=-5.5 * MINUTE, every=4)
    w.series("http_errors_per_second", 0.2, moved=(-5 * MINUTE, LOOK, 22))
    w.truth = Truth((r"new-pricing",), (r"prettier|rounded",))


@healthy("changes")
def log_level_changed(w: World) -> None:
    _talk(w, lambda _: ("INFO", w.request()))
    w.change(
        "log at debug in the importer",
        -7 * MINUTE,
        files=("src/importer.py",),
        diff="--- a/src/importer.py\n+++ b/src/importer.py\n-log.info('row %s', row)\n+log.debug('row %s', row)\n",
    )


@healthy("changes")
def deployed_elsewhere(w: World) -> None:
    _talk(w, lambda _: ("INFO", w.request()))
    w.logs[w.other] = [(at, "INFO", w.request()) for at in w.moments(-90 * MINUTE, LOOK - 5, 9)]
    w.change("release 9.1.0", -10 * MINUTE, kind="deploy", app=w.other)


@healthy("changes")
def deployed_and_well(w: World) -> None:
    _talk(w, lambda _: ("INFO", w.request()))
    w.series("http_errors_per_second", 0.2)
    w.series("http_request_duration_seconds_p95", 0.11)
    w.change("release 2.4.0: new search page", -25 * MINUTE, kind="deploy")


@healthy("changes")
def staging_was_configured(w: World) -> None:
    _talk(w, lambda _: ("INFO", w.request()))
    w.change(
        "staging: pool of 4",
        -9 * MINUTE,
        kind="commit",
        files=("deploy/staging/values.yaml",),
        diff="--- a/deploy/staging/values.yaml\n+++ b/deploy/staging/values.yaml\n-  pool: 20\n+  pool: 4\n",
    )


@healthy("changes")
def changed_after_the_alert(w: World) -> None:
    _talk(w, lambda _: ("INFO", w.request()))
    w.change("raise the timeout of the importer", 90, kind="config", detail="timeout: 5 -> 30")


@healthy("plain")
def everything_is_well(w: World) -> None:
    _base(w)


@healthy("plain")
def pods_and_metrics_are_well(w: World) -> None:
    _base(w)
    w.series("http_request_duration_seconds_p95", 0.11)
    w.series("container_memory_working_set_bytes", 2.1e8)


@twin(everything_is_well)
def config_map_is_wrong(w: World) -> None:
    for pod in w.pods():
        name = pod["metadata"]["name"]
        crash_loop(w, pod, w.service, ended("Error", 1, 100, 2), restarts=5)
        w.previous_logs[name, w.service] = [
            (98, "INFO", "reading /etc/app/config.yaml"),
            (100, "FATAL", 'required setting "queue.url" is missing'),
        ]
        w.pod_logs[name, w.service] = []
    short(w, w.service, 0)
    w.truth = Truth((w.service, r"queue\.url|setting"))


@twin(everything_is_well)
def name_is_not_resolved(w: World) -> None:
    w.logged(
        "cannot reach payments: lookup payments.internal on 10.96.0.10:53: no such host", since=-3 * MINUTE, every=5
    )
    w.truth = Truth((r"resolve|payments\.internal|no such host",))


@twin(everything_is_well)
def database_has_no_connection_left(w: World) -> None:
    w.logged(
        "FATAL: remaining connection slots are reserved for roles with the SUPERUSER attribute",
        since=-3 * MINUTE,
        every=5,
    )
    w.truth = Truth((r"connection",))


@twin(everything_is_well)
def vault_is_sealed(w: World) -> None:
    w.logged(
        "cannot renew the lease: Error making API request. URL: GET https://vault:8200/v1/database/creds. Code: 503. Errors: * Vault is sealed",
        since=-4 * MINUTE,
        every=6,
    )
    w.truth = Truth((r"vault", r"sealed|503"))


@healthy("logs")
def warnings_that_are_handled(w: World) -> None:
    _talk(w, lambda _: ("INFO", w.request()))
    last = w.logs[w.service]
    last.append(
        (-70, "WARN", "rate not fresh, the kept one is used\njava.net.http.HttpTimeoutException: request timed out")
    )
    last.append(
        (-60, "WARN", "v1beta2 of flowcontrol.apiserver.k8s.io is deprecated, unavailable in v1.29+; use v1beta3")
    )
    last.append((-50, "WARN", "a client request body is buffered to a temporary file /var/cache/proxy/0000012"))


@healthy("logs")
def one_thread_and_one_day(w: World) -> None:
    _talk(w, lambda _: ("INFO", f"ts=2026-03-10T08:00:00Z {w.request()}"))
    for at in w.moments(-4 * MINUTE, LOOK - 5, 50):
        w.logs[w.service].append((at, "WARN", "[nio-8080-exec-2] ts=2026-03-10 slow answer: 2 s"))


@healthy("history")
def experiment_that_crashes_since_days(w: World) -> None:
    w.app(w.service)
    w.app("lantern-beta", age=-48 * HOUR)
    for pod in w.pods("lantern-beta"):
        crash_loop(w, pod, "lantern-beta", ended("Error", 1, 110, 2), restarts=412)
    short(w, "lantern-beta", 0)


@healthy("logs")
def neighbour_that_nothing_calls(w: World) -> None:
    _talk(w, lambda _: ("INFO", w.request()))
    w.app(w.service)
    w.app("sandbox")
    w.logs["sandbox"] = [
        (at, "ERROR", "smtp: dial tcp: lookup mailhog.sandbox on 10.96.0.10:53: no such host")
        for at in w.moments(-6 * MINUTE, LOOK - 5, 10)
    ]


@healthy("metrics")
def surge_that_the_autoscaler_met(w: World) -> None:
    w.series("http_requests_per_second", 30, moved=(-12 * MINUTE, LOOK, 86))
    w.series("replicas", 2, noise=0, moved=(-10 * MINUTE, LOOK, 5))
    w.series("cpu_percent_of_limit", 45, moved=(-12 * MINUTE, LOOK, 70))
    w.series("http_request_duration_seconds_p95", 0.11)
    _talk(w, lambda _: ("INFO", w.request()))
