"""The state of clusters, as kubectl and others print it: an object, a fault, a cause; and nothing where nothing is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from core.rca.cluster.faults import REPAIR, Fault
from core.rca.cluster.findings import findings
from core.rca.cluster.reading import read
from core.rca.tool_outputs.clues import ToolOutput
from core.rca.tool_outputs.conclusion import conclude

CASES = (Path(__file__).parent / "data" / "clusters.txt").read_text("utf-8").split("\n### ")[1:]


def outputs_of(case: str) -> list[ToolOutput]:
    found: list[ToolOutput] = []
    for part in re.split(r"^\$ ", case, flags=re.MULTILINE)[1:]:
        call, _, text = part.partition("\n")
        tool, *arguments = call.split()
        found.append(ToolOutput(tool, dict(each.split("=", 1) for each in arguments), text))
    return found


@pytest.mark.parametrize("case", CASES, ids=[case.partition(" |")[0] for case in CASES])
def test_a_fault_is_found_in_what_tools_print_of_it(case: str) -> None:
    _, about, fault = (part.strip() for part in case.partition("\n")[0].split("|"))
    outputs = outputs_of(case)
    found = findings(read(outputs))
    if about == "-":
        assert [each for each in found if each.strength >= 0.7] == []
        return
    assert (f"{found[0].kind}/{found[0].name}", found[0].fault.name) == (about, fault), found
    assert any(found[0].quote in output.text for output in outputs), found[0].quote
    assert conclude("The shop is down.", outputs).findings[0] == found[0]


@pytest.mark.parametrize("fault", Fault)
def test_every_fault_has_a_next_check(fault: Fault) -> None:
    _, check = REPAIR[fault]
    assert check.format(name="till", detail="kubelet").endswith(".")


@pytest.mark.parametrize(
    "nested",
    ["[" * 99_000 + "]" * 99_000, '{"a": ' * 30_000 + "1" + "}" * 30_000, "\n" + "- " * 90_000 + "x"],
    ids=["lists", "mappings", "lists in blocks"],
)
def test_a_manifest_that_nests_too_deep_ends_no_process(nested: str) -> None:
    deep = ToolOutput("kubectl_get", {"output": "yaml"}, f"kind: Pod\nmetadata: {{name: till}}\nspec: {nested}")
    scaled = ToolOutput("kubectl_get", {"kind": "deployments"}, "NAMESPACE   NAME   READY\nshop        till   0/0\n")
    assert [each.fault for each in findings(read([deep, scaled]))] == [Fault.NO_REPLICAS]


PODS = "NAME       READY   STATUS    RESTARTS   AGE\napi-0      {:<8}{:<10}{:<11}3d\n"
NODES = f"NAME   {'STATUS':<28}ROLES    AGE\nn1     {{:<28}}<none>   3d\n"
WORKLOADS = "NAME   READY   UP-TO-DATE   AVAILABLE   AGE\napi    {}     1            1           3d\n"
DESCRIBED = """Name:  api-0
Status:  Running
Containers:
  main:
    State:  {}
    Ready:  {}
    Restart Count:  {}
"""
MANIFEST = (
    "kind: Deployment\nmetadata: {{name: api, uid: '1'}}\nspec: {{replicas: {}}}\nstatus: {{readyReplicas: {}}}\n"
)


@pytest.mark.parametrize(
    ("form", "before", "after", "kind", "name", "expected"),
    [
        (WORKLOADS, ("1/1",), ("0/0",), "Workload", "api", {"wanted": 0, "ready": 0, "is_well": False}),
        (WORKLOADS, ("0/0",), ("2/2",), "Workload", "api", {"wanted": 2, "ready": 2, "is_well": True}),
        (MANIFEST, (3, 3), (0, 0), "Workload", "api", {"wanted": 0, "ready": 0, "is_well": False}),
        (PODS, ("0/1", "Running", "7"), ("1/1", "Running", "0"), "Pod", "api-0", {"restarts": 0, "is_well": True}),
        (PODS, ("1/1", "Running", "0"), ("0/1", "Pending", "0"), "Pod", "api-0", {"ready": 0, "is_well": False}),
        (NODES, ("Ready,SchedulingDisabled",), ("Ready",), "Node", "n1", {"cordoned": False}),
    ],
)
def test_a_later_reading_replaces_an_earlier_one_even_with_nothing(
    form: str, before: tuple[object, ...], after: tuple[object, ...], kind: str, name: str, expected: dict[str, object]
) -> None:
    first, later = (ToolOutput("kubectl", {"at": str(at)}, form.format(*at)) for at in (before, after))
    (thing,) = [each for each in read([first, later]).of(kind) if each.name == name]
    assert {key: getattr(thing, key) for key in expected} == expected


def test_a_container_that_runs_again_is_not_in_its_earlier_state() -> None:
    waits = DESCRIBED.format("Waiting\n      Reason:  CrashLoopBackOff", "False", 4)
    outputs = [
        ToolOutput("kubectl", {"at": at}, text)
        for at, text in (("1", waits), ("2", DESCRIBED.format("Running", "True", 0)))
    ]
    (pod,) = read(outputs).of("Pod")
    assert [(each.state, each.restarts) for each in pod.containers] == [("", 0)]


def test_a_port_may_be_served_for_two_protocols_and_an_external_name_has_neither_pods_nor_ports() -> None:
    pods = """kind: Pod
metadata: {name: dns-0, uid: "1", labels: {app: dns}}
spec: {containers: [{name: main, env: [{name: DB_HOST, value: "db:5432"}], ports: [{containerPort: 53, protocol: UDP}, {containerPort: 53, protocol: TCP}]}]}
"""
    services = """---
kind: Service
metadata: {name: dns, uid: "2"}
spec: {selector: {app: dns}, ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]}
---
kind: Service
metadata: {name: db, uid: "3"}
spec: {type: ExternalName, externalName: db.example, selector: {app: db}, ports: [{port: 80}]}
"""
    described = "Name:  db\nType:  ExternalName\nSelector:  app=db\nPort:  http  80/TCP\nTargetPort:  80/TCP\nEndpoints:  <none>\n"
    assert findings(read([ToolOutput("kubernetes_objects", {}, pods + services)])) == []
    assert (
        findings(read([ToolOutput("kubernetes_objects", {}, pods), ToolOutput("kubectl_describe", {}, described)]))
        == []
    )
    sctp = services.replace("{port: 53, protocol: TCP}", "{port: 53, protocol: SCTP}")
    (finding,) = findings(read([ToolOutput("kubernetes_objects", {}, pods + sctp)]))
    assert finding.cause == "dns: its service dns passes SCTP on, and the container listens for UDP"
