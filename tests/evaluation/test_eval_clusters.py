from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from core.answering.model_exam import FULL
from core.model.errors import MalformedInput
from tests.benchmarks.asked_model import AskedModel
from tests.benchmarks.cloud_opsbench import cases_of, run
from tests.fakes.general_servers import fake_model_server
from tests.fakes.investigation import call, finalise

UNSCHEDULABLE = """Name:         till-6f9c4d7b58-x2x4z
Namespace:    shop
Status:       Pending
Events:
  Type     Reason            Age   From               Message
  ----     ------            ----  ----               -------
  Warning  FailedScheduling  70s   default-scheduler  0/3 nodes are available: 3 Insufficient cpu.
"""


def case(fault: str, about: str) -> dict[str, object]:
    arguments = {"resource_type": "pods", "name": "till-6f9c4d7b58-x2x4z", "port": 80}
    outputs = [{"tool": "DescribeResource", "arguments": arguments, "text": UNSCHEDULABLE}]
    return {"query": "The shop is down.", "outputs": outputs, "root_cause": fault, "fault_object": about}


def silent(fault: str, about: str) -> dict[str, object]:
    """A case whose outputs show no fault."""
    outputs = [
        {"tool": "GetAppYAML", "arguments": {"app_name": name}, "text": f"metadata:\n  name: {name}-of-the-shop\n"}
        for name in ("till", "cellar")
    ]
    return {"query": f"Trouble at {about}.", "outputs": outputs, "root_cause": fault, "fault_object": about}


def written(folder: Path, *cases: dict[str, object]) -> Path:
    path = folder / "cases.jsonl.xz"
    path.write_bytes(lzma.compress("\n".join(json.dumps(each) for each in cases).encode()))
    return path


async def test_a_diagnosis_is_right_if_both_object_and_type_are(tmp_path: Path) -> None:
    right = case("cpu_capacity_mismatch", "app/till")
    of_another = case("cpu_capacity_mismatch", "app/cellar")
    another_type = case("oom_killed", "app/till")
    path = written(tmp_path, right, of_another, another_type)
    figures = await run(path)
    assert figures["cases"] == 3
    assert figures["object_type@1"] == pytest.approx(1 / 3, abs=1e-4)
    assert figures["object@1"] == figures["type@1"] == pytest.approx(2 / 3, abs=1e-4)
    assert figures["by_type"]["oom_killed"]["said"] == "app/till cpu_capacity_mismatch"


@pytest.mark.external  # seconds
async def test_a_model_that_calls_the_recorded_tools_is_measured_alone_and_beside_the_evidence(tmp_path: Path) -> None:
    path = written(tmp_path, silent("taint_toleration_mismatch", "app/till"), silent("oom_killed", "app/cellar"))
    right, wrong = await run(path, AskedModel(simulate=1.0)), await run(path, AskedModel(simulate=0.0))
    assert [right["results"][name]["object_type@1"] for name in ("evidence", "model", "plumbline")] == [0.0, 1.0, 1.0]
    assert right["paired"]["plumbline"] == {"gained": 2, "lost": 0}
    assert right["exam"] == str(FULL)
    assert [wrong["results"][name]["object_type@1"] for name in ("model", "plumbline")] == [0.0, 0.0]
    assert (await run(path, AskedModel(simulate=1.0), sample=1))["cases"] == 1


async def test_a_type_outside_of_the_closed_list_counts_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLUMBLINE_LLM_CONTEXT", "32768")
    path = written(tmp_path, silent("oom_killed", "app/cellar"))
    read = call("GetAppYAML", app_name="cellar"), call("GetAppYAML", app_name="till")
    found = finalise("The cellar is flooded.", "app/cellar", evidence=["name: cellar-of-the-shop"], solution="")
    async with fake_model_server("bare", context=32_768) as server:
        server.script = lambda body: (
            json.dumps({"type": "flood"})
            if "which of these faults" in json.dumps(body)
            else [*read, found][min(2, json.dumps(body).count("Result of "))]
        )
        figures = await run(path, AskedModel(llm=server.url))
    assert figures["results"]["model"]["object@1"] == 1.0
    assert figures["results"]["model"]["type@1"] == figures["results"]["model"]["abstained"] == 0.0


def test_a_case_without_arguments_is_refused_in_one_sentence(tmp_path: Path) -> None:
    broken = case("oom_killed", "app/till") | {"outputs": [{"tool": "GetAlerts", "text": ""}]}
    with pytest.raises(MalformedInput, match="not in the format"):
        cases_of(written(tmp_path, broken))
