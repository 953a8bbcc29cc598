"""What Kubernetes tells beyond the records of a service: events and the state of pods."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.tools.kubernetes import EVENTS_HEAD, Kubernetes, Workload
from core.model.errors import ToolUnavailable
from core.ports import LogLine, Partial, TimeWindow, Tool
from core.rca.explain import explain
from core.rca.tool_outputs import ToolOutput
from tests.benchmarks.rca_engines import observed
from tests.cases import every_case
from tests.fakes.tool_servers import FakeKubernetes, event, reached

START = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
HOUR = TimeWindow(START, START + timedelta(hours=1))
WORKLOADS = {
    "api": Workload(namespace="live", selector="app=api"),
    "gone": Workload(namespace="live", selector="app=gone"),
}
KILLED = {
    "phase": "Running",
    "conditions": [
        {"type": "Initialized", "status": "True"},
        {"type": "Ready", "status": "False", "reason": "ContainersNotReady"},
    ],
    "containerStatuses": [
        {
            "name": "main",
            "image": "api:7",
            "ready": False,
            "restartCount": 4,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
        }
    ],
}


def cause(tool: str, text: str) -> str:
    """Return the cause that the output of a tool shows, which there has to be."""
    found, _ = explain(observed("api is down", [ToolOutput(tool, {"service": "api"}, text)]))
    assert found.cause is not None
    return found.cause.cause


async def tools(server: Kubernetes) -> dict[str, Tool]:
    return {tool.name: tool for tool in await server.tools(("api", "gone", "other"), HOUR)}


async def test_the_pods_are_described_with_why_they_ended() -> None:
    fake = FakeKubernetes()
    fake.statuses["api"] = KILLED
    async with reached(fake) as http:
        told = await (await tools(Kubernetes("k8s", http, WORKLOADS)))["kubernetes_pods"].call({"service": "api"})
    assert told.splitlines() == [
        "Name:  api-0",
        "Namespace:  live",
        "Node:  node-1",
        "Status:  Running",
        "Containers:",
        "  main:",
        "    Image:  api:7",
        "    State:  Waiting",
        "      Reason:  CrashLoopBackOff",
        "    Last State:  Terminated",
        "      Reason:  OOMKilled",
        "      Exit Code:  137",
        "    Ready:  False",
        "    Restart Count:  4",
        "    Limits:",
        "      memory:  512Mi",
        "Conditions:",
        "  Type  Status  Reason  Message",
        "  Ready  False  ContainersNotReady",
    ]


async def test_what_is_told_of_pods_and_events_is_understood_as_a_cause() -> None:
    fake = FakeKubernetes()
    fake.statuses["api"] = KILLED
    fake.events = [event("FailedMount", 'configmap "till" not found', "2026-03-14T09:40:00Z")]
    async with reached(fake) as http:
        asked = await tools(Kubernetes("k8s", http, WORKLOADS))
        told = {name: await tool.call({"service": "api"}) for name, tool in asked.items()}
    pods = cause("kubernetes_pods", told["kubernetes_pods"])
    assert "OOMKilled: it ran out of memory at its limit of 512Mi" in pods
    assert 'configmap "till" is not found' in cause("kubernetes_events", told["kubernetes_events"])


@pytest.mark.parametrize("has_endpoints", [True, False], ids=["with endpoints", "without right to read endpoints"])
async def test_the_objects_around_a_service_are_read_and_a_selector_that_matches_nothing_is_a_cause(
    *, has_endpoints: bool
) -> None:
    fake = FakeKubernetes()
    container = {
        "name": "main",
        "ports": [{"containerPort": 8080}],
        "env": [{"name": "CART_ADDR", "value": "cart:7070"}, {"name": "DB_PASSWORD", "value": "correct horse"}],
    }
    named = {"name": "api", "namespace": "live", "uid": "1", "annotations": {"last-applied": "x"}}
    pod = {
        "metadata": named | {"labels": {"app": "api"}},
        "spec": {"containers": [container]},
        "status": {"phase": "Running"},
    }
    service = {"metadata": named, "spec": {"selector": {"app": "apy"}, "ports": [{"port": 80, "targetPort": 8080}]}}
    fake.pods, fake.objects = [pod], {"services": [service], "nodes": [], "resourcequotas": []}
    fake.objects |= {"endpoints": [{"metadata": named}]} if has_endpoints else {}
    async with reached(fake) as http:
        told = await (await tools(Kubernetes("k8s", http, WORKLOADS)))["kubernetes_objects"].call({"service": "api"})
    assert "value: cart:7070" in told
    assert "correct horse" not in told
    assert "last-applied" not in told
    assert "# Not read: k8s: PersistentVolume" in told
    assert cause("kubernetes_objects", told).startswith("api: the selector of its service matches no pod (app=apy)")


async def test_the_events_of_its_pods_within_the_window_are_told_page_by_page() -> None:
    fake = FakeKubernetes(most=2)
    fake.statuses["api"] = KILLED
    fake.events = [
        event("BackOff", "Back-off restarting", "2026-03-14T09:40:00Z"),
        event("Killing", "of another", "2026-03-14T09:41:00Z", pod="other-0"),
        event("Later", "after the window", "2026-03-14T10:00:00Z"),
        event("Pulled", "image pulled", "2026-03-14T09:30:00Z", kind="Normal"),
    ]
    async with reached(fake) as http:
        told = await (await tools(Kubernetes("k8s", http, WORKLOADS)))["kubernetes_events"].call({"service": "api"})
    assert told.splitlines() == [
        EVENTS_HEAD,
        "2026-03-14 09:30:00 UTC  Normal   Pulled              pod/api-0  image pulled (x3)",
        "2026-03-14 09:40:00 UTC  Warning  BackOff             pod/api-0  Back-off restarting (x3)",
    ]


async def test_warnings_about_pods_stand_among_the_records() -> None:
    fake = FakeKubernetes([LogLine("api", START + timedelta(minutes=1), "ERROR", "boom")])
    fake.events = [event("OOMKilling", "Memory cgroup out of memory", "2026-03-14T09:00:30Z")]
    async with reached(fake) as http:
        lines = await Kubernetes("k8s", http, WORKLOADS).lines("api", HOUR, 10)
    assert [(line.level, line.text) for line in lines] == [
        ("WARN", "Kubernetes OOMKilling: Memory cgroup out of memory"),
        ("ERROR", "ERROR boom"),
    ]


async def test_a_pod_that_has_not_started_does_not_hide_what_else_is_told() -> None:
    waiting = {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    fake = FakeKubernetes()
    fake.statuses["api"] = {"phase": "Pending", "containerStatuses": [waiting]}
    fake.without_log = frozenset({"api-0"})
    fake.events = [event("Failed", "Failed to pull image", "2026-03-14T09:00:30Z")]
    async with reached(fake) as http:
        (warning,) = await Kubernetes("k8s", http, WORKLOADS).lines("api", HOUR, 10)
    assert warning.text == "Kubernetes Failed: Failed to pull image"


async def test_a_service_without_pods_has_nothing_to_tell() -> None:
    async with reached(FakeKubernetes()) as http:
        found = await tools(Kubernetes("k8s", http, WORKLOADS))
        assert await found["kubernetes_pods"].call({"service": "gone"}) == "No pod of gone."
        assert await found["kubernetes_events"].call({"service": "gone"}) == "No event about gone."


async def test_only_services_that_are_configured_can_be_asked_for() -> None:
    async with reached(FakeKubernetes()) as http:
        server = Kubernetes("k8s", http, WORKLOADS)
        assert (await tools(server))["kubernetes_pods"].parameters[0].choices == ("api", "gone")
        assert await server.tools(("other",), HOUR) == []
        assert await server.lines("other", HOUR, 10) == []


async def test_a_cluster_that_refuses_says_so() -> None:
    fake = FakeKubernetes()
    fake.refuse(403)
    async with reached(fake) as http:
        with pytest.raises(ToolUnavailable, match="refuses the token"):
            await Kubernetes("k8s", http, WORKLOADS).check()


@pytest.mark.parametrize(
    ("stamps", "row"),
    [
        (
            {
                "eventTime": "2026-03-14T08:10:00Z",
                "series": {"lastObservedTime": "2026-03-14T09:20:00.1Z", "count": 31},
            },
            31,
        ),
        ({"eventTime": "2026-03-14T09:20:00Z", "series": None}, 1),
        ({"lastTimestamp": "2026-03-14T09:20:00Z", "count": 4}, 4),
    ],
)
async def test_an_event_is_dated_with_its_last_occurrence(stamps: dict[str, object], row: int) -> None:
    fake = FakeKubernetes()
    fake.statuses["api"] = KILLED
    bare = event("FailedScheduling", "no node fits", "2026-03-14T08:10:00Z")
    fake.events = [{**bare, "lastTimestamp": None, "count": None, **stamps}]
    async with reached(fake) as http:
        shown = await (await tools(Kubernetes("k8s", http, WORKLOADS)))["kubernetes_events"].call({"service": "api"})
    assert "09:20:00" in shown
    assert shown.endswith(f"no node fits (x{row})" if row > 1 else "no node fits")


async def test_events_are_kept_when_a_log_cannot_be_read() -> None:
    fake = FakeKubernetes()
    fake.statuses["api"] = {"phase": "Running"}
    fake.without_log = frozenset({"api-0"})
    fake.events = [event("Evicted", "node is down", "2026-03-14T09:00:30Z")]
    async with reached(fake) as http:
        found = await Kubernetes("k8s", http, WORKLOADS).lines("api", HOUR, 10)
    assert [line.text for line in found] == ["Kubernetes Evicted: node is down"]
    assert isinstance(found, Partial)
    assert ["api-0" in gap.tool for gap in found.gaps] == [True]


def owned(name: str, owner: str = "", kind: str = "ReplicaSet", **status: object) -> dict[str, Any]:
    owners = [{"kind": kind, "name": owner}] if owner else None
    return {
        "metadata": {"name": name, "namespace": "live", "ownerReferences": owners},
        "spec": {"containers": [{"name": "main"}]},
        "status": {"phase": "Running", **status},
    }


def about(kind: str, name: str) -> dict[str, Any]:
    return {
        **event("Trouble", f"{kind} {name}", "2026-03-14T09:10:00Z"),
        "involvedObject": {"kind": kind, "name": name},
    }


@every_case(
    ("pod", "kind", "name", "belongs"),
    [
        (owned("api-7d9f8c6b5-x2x4z", "api-7d9f8c6b5"), "ReplicaSet", "api-7d9f8c6b5", True),
        (owned("api-7d9f8c6b5-x2x4z", "api-7d9f8c6b5"), "Pod", "api-7d9f8c6b5-gqvk8", True),  # gone already
        (owned("api-7d9f8c6b5-x2x4z", "api-7d9f8c6b5"), "ReplicaSet", "api-5c4b8d9f7", True),  # of another rollout
        (owned("api-7d9f8c6b5-x2x4z", "api-7d9f8c6b5"), "Pod", "api-5c4b8d9f7-gqvk8", True),
        (owned("api-7d9f8c6b5-x2x4z", "api-7d9f8c6b5"), "Deployment", "api", True),
        (owned("api-7d9f8c6b5-x2x4z", "api-7d9f8c6b5"), "Deployment", "api-gateway", False),
        (owned("api-7d9f8c6b5-x2x4z", "api-7d9f8c6b5"), "Pod", "api-gateway-5c4b8d9f7-gqvk8", False),
        (owned("api-7d9f8c6b5-x2x4z", "api-7d9f8c6b5"), "ReplicaSet", "api-gateway-5c4b8d9f7", False),
        (owned("api-7d9f8c6b5-x2x4z", "api-7d9f8c6b5"), "Node", "api", False),
        (owned("tariffs-29550120-abcde", "tariffs-29550120", "Job"), "Job", "tariffs-29550060", True),
        (owned("tariffs-29550120-abcde", "tariffs-29550120", "Job"), "Pod", "tariffs-29550060-k7k2p", True),
        (owned("tariffs-29550120-abcde", "tariffs-29550120", "Job"), "CronJob", "tariffs", True),
        (owned("migrate-x7k2p", "migrate", "Job"), "Job", "migrate", True),
        (owned("db-0", "db", "StatefulSet"), "StatefulSet", "db", True),
        (owned("db-0", "db", "StatefulSet"), "Pod", "db-2", True),
        (owned("db-0", "db", "StatefulSet"), "Pod", "dbx-2", False),
        (owned("alone"), "Pod", "alone", True),
        (owned("alone"), "Pod", "alone-2", False),
    ],
)
async def test_an_event_belongs_to_the_service_of_the_object_that_it_is_about(
    pod: dict[str, Any], kind: str, name: str, *, belongs: bool
) -> None:
    fake = FakeKubernetes()
    fake.pods, fake.events = [pod], [about(kind, name)]
    fake.logs = {(pod["metadata"]["name"], "main", ""): ""}
    async with reached(fake) as http:
        found = await Kubernetes("k8s", http, WORKLOADS).lines("api", HOUR, 10)
    assert [line.text for line in found] == ([f"Kubernetes Trouble: {kind} {name}"] if belongs else [])


@every_case(
    ("sets", "kind", "name", "belongs"),
    [
        ({"replicasets": [owned("api-7d9f8c6b5", "api", "Deployment")]}, "ReplicaSet", "api-7d9f8c6b5", True),
        ({"replicasets": [owned("api-7d9f8c6b5", "api", "Deployment")]}, "Deployment", "api", True),
        ({"replicasets": [owned("api-7d9f8c6b5", "api", "Deployment")]}, "Deployment", "login", False),
        ({"jobs": [owned("import")]}, "Job", "import", True),
        ({"jobs": [owned("import")]}, "Pod", "import-k7k2p", True),
        ({"statefulsets": [owned("db")]}, "StatefulSet", "db", True),
        ({"statefulsets": [owned("db")]}, "Pod", "db-0", True),
        ({"daemonsets": [owned("agent")]}, "Pod", "agent-k7k2p", True),
        ({"daemonsets": [owned("agent")]}, "Pod", "agent-ui-k7k2p", False),
    ],
)
async def test_the_events_of_a_service_whose_pods_cannot_be_created_are_read(
    sets: dict[str, Any], kind: str, name: str, *, belongs: bool
) -> None:
    fake = FakeKubernetes()
    fake.sets |= sets
    fake.events = [about(kind, name)]
    async with reached(fake) as http:
        found = await Kubernetes("k8s", http, WORKLOADS).lines("api", HOUR, 10)
        shown = await (await tools(Kubernetes("k8s", http, WORKLOADS)))["kubernetes_events"].call({"service": "api"})
    assert [line.text for line in found] == ([f"Kubernetes Trouble: {kind} {name}"] if belongs else [])
    assert (f"{kind} {name}" in shown) is belongs


STAMP = "2026-03-14T09:01:00.000000000Z"
ENDED = {"terminated": {"exitCode": 1, "finishedAt": "2026-03-14T09:01:30Z"}}


@every_case(
    ("spec", "status", "logs", "expected"),
    [
        (
            {"initContainers": [{"name": "migrate"}], "containers": [{"name": "main"}]},
            {
                "phase": "Pending",
                "initContainerStatuses": [{"name": "migrate", "state": ENDED}],
                "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}],
            },
            {("p", "migrate", ""): f"{STAMP} ERROR no such table"},
            ["ERROR no such table"],
        ),
        (
            {"containers": [{"name": "main"}], "ephemeralContainers": [{"name": "debugger"}]},
            {"ephemeralContainerStatuses": [{"name": "debugger", "state": {"running": {}}}]},
            {("p", "main", ""): "", ("p", "debugger", ""): f"{STAMP} seen by hand"},
            ["seen by hand"],
        ),
        (
            {"containers": [{"name": "main"}]},
            {"containerStatuses": [{"name": "main", "state": {"running": {}}, "lastState": ENDED}]},
            {("p", "main", ""): f"{STAMP} started", ("p", "main", "previous"): f"{STAMP} out of memory"},
            ["started", "out of memory"],
        ),
        (
            {"containers": [{"name": "main"}]},
            {"containerStatuses": [{"name": "main", "state": {"waiting": {}}, "lastState": ENDED}]},
            {("p", "main", "previous"): f"{STAMP} out of memory"},
            ["out of memory"],
        ),
        (
            {"containers": [{"name": "main"}]},
            {
                "containerStatuses": [
                    {
                        "name": "main",
                        "state": {"running": {}},
                        "lastState": {"terminated": {"exitCode": 0, "finishedAt": "2026-03-12T09:00:00Z"}},
                    }
                ]
            },
            {("p", "main", ""): f"{STAMP} long after"},
            ["long after"],
        ),
        (
            {"containers": [{"name": "main"}]},
            {},
            {("p", "main", ""): f"{STAMP} 10 %\r90 %\rERROR disk is full\r\n{STAMP} next"},
            ["10 %\r90 %\rERROR disk is full", "next"],
        ),
    ],
)
async def test_every_container_that_ran_gives_its_log(
    spec: dict[str, Any], status: dict[str, Any], logs: dict[tuple[str, str, str], str], expected: list[str]
) -> None:
    fake = FakeKubernetes()
    fake.pods = [{"metadata": {"name": "p"}, "spec": spec, "status": {"phase": "Running", **status}}]
    fake.logs = logs
    async with reached(fake) as http:
        found = await Kubernetes("k8s", http, WORKLOADS).lines("api", HOUR, 10)
    assert sorted(line.text for line in found) == sorted(expected)
    assert isinstance(found, Partial)
    assert found.gaps == ()


def one(name: str, phase: str = "Running", reason: str = "", ended: str = "", **status: Any) -> dict[str, Any]:
    state = {"terminated": {"finishedAt": ended}} if ended else {"running": {}}
    is_ready = phase == "Running"
    containers = [{"name": "main", "ready": is_ready, "state": state}] if not reason else []
    metadata = {
        "name": name,
        "namespace": "live",
        "labels": {"app": "api"},
        "creationTimestamp": "2026-03-14T08:00:00Z",
    }
    given = {"phase": phase, "reason": reason, "containerStatuses": containers, **status}
    return {"metadata": metadata, "spec": {"nodeName": "n1", "containers": [{"name": "main"}]}, "status": given}


async def test_pods_that_live_or_failed_last_are_read_first_and_the_others_are_named() -> None:
    waiting = {"name": "main", "ready": False, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ENDED}
    fake = FakeKubernetes()
    fake.pods = [
        *[one(f"evicted-{number:02d}", "Failed", "Evicted") for number in range(12)],
        one("done", "Succeeded", ended="2026-03-14T09:20:00Z"),
        *[one(f"failed-{number}", "Failed", ended=f"2026-03-14T09:0{number}:00Z") for number in range(9)],
        one("runs"),
        one("crashes", containerStatuses=[waiting]),
    ]
    fake.logs = {(pod["metadata"]["name"], "main", ""): f"{STAMP} of {pod['metadata']['name']}" for pod in fake.pods}
    fake.logs["crashes", "main", "previous"] = f"{STAMP} of crashes"
    async with reached(fake) as http:
        found = await Kubernetes("k8s", http, WORKLOADS).lines("api", HOUR, 100)
        shown = await (await tools(Kubernetes("k8s", http, WORKLOADS)))["kubernetes_pods"].call({"service": "api"})
    assert isinstance(found, Partial)
    read = ["crashes", "runs", *(f"failed-{number}" for number in range(8, 0, -1))]
    assert sorted(line.text for line in found) == sorted(f"of {name}" for name in read)
    assert [line.removeprefix("Name:  ") for line in shown.splitlines() if line.startswith("Name:")] == read
    (gap,) = found.gaps
    assert gap.detail.startswith("14 of 24: failed-0 (Failed), done (Succeeded), evicted-00 (Evicted), ")
    assert gap.detail.endswith("…")
    assert f"Not read: k8s: pods: left out ({gap.detail})" in shown


async def test_a_pod_that_no_node_has_taken_is_read_before_those_that_are_ready() -> None:
    fake = FakeKubernetes()
    fake.pods = [*(one(f"runs-{number}") for number in range(10)), one("waits", "Pending", containerStatuses=[])]
    async with reached(fake) as http:
        shown = await (await tools(Kubernetes("k8s", http, WORKLOADS)))["kubernetes_pods"].call({"service": "api"})
    assert shown.startswith("Name:  waits")


@pytest.mark.parametrize(("ready", "lost"), [("Unknown", True), ("False", True), ("True", False)])
async def test_a_pod_tells_since_when_it_is_terminating_and_that_its_node_is_lost(ready: str, *, lost: bool) -> None:
    fake = FakeKubernetes()
    fake.pods = [one("api-0")]
    fake.pods[0]["metadata"] |= {"deletionTimestamp": "2026-03-14T08:05:00Z", "finalizers": ["shop/till"]}
    condition = {"type": "Ready", "status": ready, "reason": "NodeStatusUnknown", "message": "Kubelet is silent."}
    fake.objects["nodes"] = [
        {
            "metadata": {"name": "n1"},
            "status": {"conditions": [{"type": "DiskPressure", "status": "False"}, condition]},
        },
        {"metadata": {"name": "n2"}, "status": {"conditions": [{**condition, "status": "False"}]}},
    ]
    async with reached(fake) as http:
        shown = await (await tools(Kubernetes("k8s", http, WORKLOADS)))["kubernetes_pods"].call({"service": "api"})
    lines = shown.splitlines()
    assert "Status:  Terminating since 2026-03-14 08:05:00 UTC, Running" in lines
    assert "Finalizers:  shop/till" in lines
    assert ("Node:  n1 (NotReady: NodeStatusUnknown Kubelet is silent.)" in lines) is lost


async def test_the_nodes_of_pods_that_are_well_are_not_asked_for_and_one_that_is_hidden_is_named() -> None:
    fake = FakeKubernetes()
    fake.pods, fake.objects = [one("api-0")], {}
    async with reached(fake) as http:
        call = (await tools(Kubernetes("k8s", http, WORKLOADS)))["kubernetes_pods"].call
        assert "Not read" not in await call({"service": "api"})
        fake.pods = [one("api-0", "Pending")]
        assert "Not read: k8s: node n1: access refused" in await call({"service": "api"})


OWNED = owned("api-7d9f8c6b5-x2x4z", "api-7d9f8c6b5")
OWNED["metadata"]["labels"] = {"app": "api", "tier": "web"}
OWNED["spec"] |= {"nodeName": "n1", "volumes": [{"persistentVolumeClaim": {"claimName": "tills"}}, {"emptyDir": {}}]}


@every_case(
    ("kind", "name", "belongs"),
    [
        ("Node", "n1", True),
        ("Node", "n2", False),
        ("PersistentVolumeClaim", "tills", True),
        ("PersistentVolumeClaim", "data-api-0", True),  # of a StatefulSet
        ("PersistentVolumeClaim", "data-login-0", False),
        ("Rollout", "api", True),
        ("AnalysisRun", "api-7d9f8c6b5-7", True),
        ("AnalysisRun", "login-7d9f8c6b5-7", False),
        ("HorizontalPodAutoscaler", "api", True),
        ("HorizontalPodAutoscaler", "web-scaler", True),
        ("HorizontalPodAutoscaler", "login-scaler", False),
        ("ScaledObject", "queue-scaler", True),
        ("PodDisruptionBudget", "web-budget", True),
        ("PodDisruptionBudget", "all-budget", False),
        ("Service", "api", True),
        ("Ingress", "login", False),
    ],
)
async def test_an_event_of_what_the_service_runs_on_or_is_scaled_by_is_shown(
    kind: str, name: str, *, belongs: bool
) -> None:
    fake = FakeKubernetes()
    fake.pods, fake.logs = [OWNED], {("api-7d9f8c6b5-x2x4z", "main", ""): ""}
    (fake.events_of_nodes if kind == "Node" else fake.events).append(about(kind, name))
    fake.objects |= {
        "horizontalpodautoscalers": [
            {"metadata": {"name": "web-scaler"}, "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "api"}}},
            {"metadata": {"name": "login-scaler"}, "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "login"}}},
        ],
        "scaledobjects": [{"metadata": {"name": "queue-scaler"}, "spec": {"scaleTargetRef": {"name": "api"}}}],
        "poddisruptionbudgets": [
            {"metadata": {"name": "web-budget"}, "spec": {"selector": {"matchLabels": {"tier": "web"}}}},
            {"metadata": {"name": "all-budget"}, "spec": {"selector": {}}},
        ],
    }
    async with reached(fake) as http:
        found = await Kubernetes("k8s", http, WORKLOADS).lines("api", HOUR, 10)
        shown = await (await tools(Kubernetes("k8s", http, WORKLOADS)))["kubernetes_events"].call({"service": "api"})
    assert [line.text for line in found] == ([f"Kubernetes Trouble of {kind} {name}: {kind} {name}"] if belongs else [])
    assert (f"{kind.lower()}/{name}" in shown) is belongs
    assert isinstance(found, Partial)
    assert found.gaps == ()


async def test_a_scaler_that_cannot_be_read_is_named_where_it_has_an_event() -> None:
    fake = FakeKubernetes()
    fake.pods, fake.events = [OWNED], [about("HorizontalPodAutoscaler", "web-scaler")]
    async with reached(fake) as http:
        shown = await (await tools(Kubernetes("k8s", http, WORKLOADS)))["kubernetes_events"].call({"service": "api"})
    assert shown.splitlines()[0] == "No event about api."
    assert "Not read: k8s: HorizontalPodAutoscaler: access refused" in shown


async def test_of_too_many_events_the_warnings_and_the_last_are_shown_and_the_others_named() -> None:
    fake = FakeKubernetes()
    fake.pods = [OWNED]
    pod = OWNED["metadata"]["name"]
    fake.events = [
        event("OOMKilling", "first of all", "2026-03-14T09:00:00Z", pod),
        *[event("Pulled", f"image {number}", f"2026-03-14T09:{number:02d}:30Z", pod, "Normal") for number in range(60)],
    ]
    async with reached(fake) as http:
        shown = await (await tools(Kubernetes("k8s", http, WORKLOADS)))["kubernetes_events"].call({"service": "api"})
    lines = shown.splitlines()
    assert "OOMKilling" in lines[1]
    assert "image 59" in lines[-2]
    assert lines[-1] == "Not read: k8s: events: left out (1 of 61: Pulled)"
