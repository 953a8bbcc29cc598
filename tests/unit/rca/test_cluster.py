"""The state of clusters, as kubectl and others print it: an object, a fault, a cause; and nothing where nothing is wrong."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.rca.cluster.faults import ACQUITTALS, SYMPTOMS
from core.rca.cluster.findings import findings
from core.rca.cluster.reading import read
from core.rca.explain import explain
from core.rca.failures import FAULTS
from core.rca.incident_signals import survey
from core.rca.tool_outputs import ToolOutput
from tests.benchmarks.rca_engines import observed
from tests.cases import every_case

CASES = (Path(__file__).parent / "data" / "clusters.txt").read_text("utf-8").split("\n### ")[1:]


def outputs_of(case: str) -> list[ToolOutput]:
    found: list[ToolOutput] = []
    for part in re.split(r"^\$ ", case, flags=re.MULTILINE)[1:]:
        call, _, text = part.partition("\n")
        tool, *arguments = call.split()
        found.append(ToolOutput(tool, dict(each.split("=", 1) for each in arguments), text))
    return found


@every_case("case", CASES)
def test_a_fault_is_found_in_what_tools_print_of_it(case: str) -> None:
    _, about, fault = (part.strip() for part in case.partition("\n")[0].split("|"))
    outputs = outputs_of(case)
    observations = observed("The shop is down.", outputs)
    faults = survey(observations).faults
    cause = explain(observations)[0].cause
    if about == "-":
        assert (faults, cause) == ((), None)
        return
    assert (f"{faults[0].kind}/{faults[0].name}", faults[0].fault.id) == (about, fault), faults
    assert any(faults[0].quote in output.text for output in outputs), faults[0].quote
    assert cause is not None
    assert faults[0].cause in cause.cause


def test_every_fault_has_a_symptom_that_is_looked_for_and_a_next_check(subtests: pytest.Subtests) -> None:
    for fault, row in FAULTS.items():
        with subtests.test(fault=fault):
            assert row.next_check.format(name="till", detail="kubelet").endswith(".")
            assert row.hurts
            assert set(row.hurts) <= {*SYMPTOMS, "said", "measured", "uncreated"}
            assert set(row.acquits) <= set(ACQUITTALS)


@pytest.mark.parametrize(
    "nested",
    ["[" * 99_000 + "]" * 99_000, '{"a": ' * 30_000 + "1" + "}" * 30_000, "\n" + "- " * 90_000 + "x"],
    ids=["lists", "mappings", "lists in blocks"],
)
def test_a_manifest_that_nests_too_deep_ends_no_process(nested: str) -> None:
    deep = ToolOutput("kubectl_get", {"output": "yaml"}, f"kind: Pod\nmetadata: {{name: till}}\nspec: {nested}")
    waits = ToolOutput(
        "kubectl_get", {"kind": "pods"}, "NAME     READY   STATUS             RESTARTS   AGE\ntill-0   0/1     CrashLoopBackOff   5          9d\n"
    )  # fmt: skip
    cluster = read([deep, waits], observed("", [waits]).until)
    assert [each.fault.id for each in findings(cluster)] == ["CRASH"]


NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
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


@every_case(
    ("form", "before", "after", "kind", "name", "expected"),
    [
        (WORKLOADS, ("1/1",), ("0/0",), "Workload", "api", {"wanted": 0, "ready": 0}),
        (WORKLOADS, ("0/0",), ("2/2",), "Workload", "api", {"wanted": 2, "ready": 2}),
        (MANIFEST, (3, 3), (0, 0), "Workload", "api", {"wanted": 0, "ready": 0}),
        (PODS, ("0/1", "Running", "7"), ("1/1", "Running", "0"), "Pod", "api-0", {"restarts": 0, "ready": 1}),
        (PODS, ("1/1", "Running", "0"), ("0/1", "Pending", "0"), "Pod", "api-0", {"ready": 0, "status": "Pending"}),
        (NODES, ("Ready,SchedulingDisabled",), ("Ready",), "Node", "n1", {"cordoned": False}),
    ],
)
def test_a_later_reading_replaces_an_earlier_one_even_with_nothing(
    form: str, before: tuple[object, ...], after: tuple[object, ...], kind: str, name: str, expected: dict[str, object]
) -> None:
    first, later = (ToolOutput("kubectl", {"at": str(at)}, form.format(*at)) for at in (before, after))
    (resource,) = [each for each in read([first, later], NOW).of(kind) if each.name == name]
    assert {key: getattr(resource, key) for key in expected} == expected


def test_a_container_that_runs_again_is_not_in_its_earlier_state() -> None:
    waits = DESCRIBED.format("Waiting\n      Reason:  CrashLoopBackOff", "False", 4)
    runs = DESCRIBED.format("Running", "True", 0)
    cluster = read([ToolOutput("kubectl", {"at": at}, text) for at, text in (("1", waits), ("2", runs))], NOW)
    (pod,) = cluster.of("Pod")
    assert [(each.waits, each.restarts) for each in pod.containers] == [("", 0)]
    assert cluster.is_well(pod)


def test_an_external_name_has_neither_pods_nor_ports() -> None:
    described = "Name:  db\nType:  ExternalName\nSelector:  app=db\nPort:  http  80/TCP\nTargetPort:  80/TCP\nEndpoints:  <none>\n"
    given = "kind: Service\nmetadata: {name: db, uid: '3'}\nspec: {type: ExternalName, externalName: db.example, selector: {app: db}, ports: [{port: 80}]}\n"
    for text in (described, given):
        (service,) = read([ToolOutput("kubectl", {}, text)], NOW).of("Service")
        assert (service.selector, service.ports, service.endpoints) == ({}, (), None)
