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
