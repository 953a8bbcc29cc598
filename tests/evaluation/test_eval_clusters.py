from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from bot.evaluation.cloud_opsbench import cases_of, is_snapshots, run
from core.model.errors import MalformedInput

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


def written(folder: Path, *cases: dict[str, object]) -> Path:
    path = folder / "cases.jsonl.xz"
    path.write_bytes(lzma.compress("\n".join(json.dumps(each) for each in cases).encode()))
    return path


def test_a_diagnosis_is_right_if_both_object_and_type_are(tmp_path: Path) -> None:
    right = case("cpu_capacity_mismatch", "app/till")
    of_another = case("cpu_capacity_mismatch", "app/cellar")
    another_type = case("oom_killed", "app/till")
    path = written(tmp_path, right, of_another, another_type)
    assert is_snapshots(path)
    figures = run(path)
    assert figures["cases"] == 3
    assert figures["object_type@1"] == pytest.approx(1 / 3, abs=1e-4)
    assert figures["object@1"] == figures["type@1"] == pytest.approx(2 / 3, abs=1e-4)
    assert figures["by_type"]["oom_killed"]["said"] == "app/till cpu_capacity_mismatch"


def test_a_case_without_arguments_is_refused_in_one_sentence(tmp_path: Path) -> None:
    broken = case("oom_killed", "app/till") | {"outputs": [{"tool": "GetAlerts", "text": ""}]}
    with pytest.raises(MalformedInput, match="not in the format"):
        cases_of(written(tmp_path, broken))
