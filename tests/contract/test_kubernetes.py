"""What Kubernetes tells beyond the records of a service: events and the state of pods."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from adapters.tools.kubernetes import Kubernetes, Workload
from adapters.tools.kubernetes_objects import EVENTS_HEAD
from core.model.errors import ToolUnavailable
from core.ports import LogLine, Partial, TimeWindow, Tool
from core.rca.tool_outputs.clues import ToolOutput
from core.rca.tool_outputs.conclusion import conclude
from tests.fakes.tool_servers import FakeKubernetes, event, reached

START = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
HOUR = TimeWindow(START, START + timedelta(hours=1))
WORKLOADS = {"api": Workload("live", "app=api"), "gone": Workload("live", "app=gone")}
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
    pods = conclude("api is down", [ToolOutput("kubernetes_pods", {"service": "api"}, told["kubernetes_pods"])])
    assert "OOMKilled: it ran out of memory at its limit of 512Mi" in pods.cause
    events = conclude("api is down", [ToolOutput("kubernetes_events", {"service": "api"}, told["kubernetes_events"])])
    assert 'FailedMount: configmap "till" not found' in events.cause


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
