"""The generator and the measure: many incidents with known causes."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from core.answering.model_exam import FULL
from core.model.errors import MalformedInput
from tests.benchmarks.asked_model import AskedModel
from tests.benchmarks.incidents import invented, print_table, run
from tests.evaluation.generate_incidents import generate
from tests.evaluation.incident_faults import FAULTS

pytestmark = pytest.mark.external  # some seconds of inventing incidents and looking into them


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("incidents")
    generate(made, len(FAULTS), seed=11)
    return made


@pytest.fixture(scope="module")
def figures(folder: Path) -> dict[str, object]:
    return run(folder)


def test_a_change_from_after_the_trouble_began_is_never_named_first(figures: dict[str, object]) -> None:
    assert figures["after_first_sign"] == 0
    assert figures["developed_on"]["after_first_sign"] == 0  # type: ignore[index]


def test_most_causes_are_found_in_classes_that_were_not_developed_on(figures: dict[str, object]) -> None:
    assert figures["cases"] == len(FAULTS) // 2
    assert float(figures["first"]) >= 0.6  # type: ignore[arg-type]
    assert float(figures["decoy_first"]) <= 0.3  # type: ignore[arg-type]


def test_a_seed_gives_the_same_incidents_again(folder: Path, tmp_path: Path) -> None:
    generate(tmp_path, 1, seed=11)
    for name in ("changes.jsonl", "traces/spans.jsonl", "truth.json"):
        assert (tmp_path / "incident-0000" / name).read_bytes() == (folder / "incident-0000" / name).read_bytes()


def test_a_folder_without_cases_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MalformedInput, match="no case"):
        run(tmp_path)


def test_the_causes_of_generated_incidents_are_paired(tmp_path: Path) -> None:
    with invented(4, 3) as folder:
        figures = run(folder, llm=AskedModel(simulate=1.0))
    assert figures["results"].keys() == {"evidence", "model", "plumbline"}
    assert figures["asked"] == 4
    results = figures["results"]
    assert results["model"]["first"] == 1.0
    assert results["evidence"]["first"] <= results["plumbline"]["first"]
    assert figures["exam"] == str(FULL)
    assert figures["paired"].keys() == {"model", "plumbline"}
    with (tmp_path / "table.txt").open("w") as out:
        print_table(figures, Console(file=out, width=200))
    assert "the evidence engine has wrong" in (tmp_path / "table.txt").read_text()
