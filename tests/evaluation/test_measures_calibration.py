"""The calibration of stated confidences, on files made here."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from core.model.errors import MalformedInput
from tests.benchmarks.__main__ import app
from tests.benchmarks.calibration import METHODS, run

pytestmark = pytest.mark.external  # some seconds of fits

HEADER = ["llm", "qset", "question_id", "stated_confidence", "correct"]


def written(path: Path, groups: dict[str, int], seed: int = 0) -> Path:
    """Answers of an overconfident model, which says 100 % for what is right two times in three."""
    generator = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for name, count in groups.items():
            ability = generator.beta(3, 2, count)
            stated = np.round(ability**0.4, 2)
            for number, (score, right) in enumerate(zip(stated, generator.random(count) < ability, strict=True)):
                writer.writerow([*name.split("/"), number, score, "TRUE" if right else "FALSE"])
    return path


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    return run(
        written(tmp_path_factory.mktemp("eval") / "answers.csv", {"m/large": 1100, "m/small": 150, "m/tiny": 30})
    )


def test_every_method_is_measured_at_every_budget_that_half_a_group_allows(figures: dict) -> None:
    assert figures["results"].keys() == {"m/large", "m/small"}
    for group, budgets in {
        "m/large": ["20", "50", "100", "200", "500", "all"],
        "m/small": ["20", "50", "all"],
    }.items():
        assert figures["results"][group].keys() == METHODS.keys()
        for measured in figures["results"][group].values():
            assert list(measured) == budgets
            assert all(each.keys() == {"ece", "ece_floor", "brier", "auroc"} for each in measured.values())


def test_the_mean_is_that_of_the_groups(figures: dict) -> None:
    small, large = (figures["results"][group]["raw"]["50"]["brier"] for group in ("m/small", "m/large"))
    mean = figures["mean"]["raw"]["50"]
    assert mean["groups"] == 2
    assert mean["brier"] == pytest.approx((small + large) / 2, abs=1e-4)
    assert mean["brier_ci"][0] <= mean["brier"] <= mean["brier_ci"][1]
    assert figures["mean"]["raw"]["500"]["groups"] == 1


def test_plumbline_is_truer_than_what_was_stated_and_tells_as_much(figures: dict) -> None:
    for budget in ("50", "100", "500", "all"):
        raw, plumbline = (figures["mean"][method][budget] for method in ("raw", "plumbline"))
        assert plumbline["ece"] < raw["ece"] / 2
        assert plumbline["auroc"] > raw["auroc"] - 0.01
        assert plumbline["brier"] < min(raw["brier"], figures["mean"]["base_rate"][budget]["brier"])


def test_a_group_has_the_same_figures_whatever_else_is_in_the_file(tmp_path: Path) -> None:
    path = written(tmp_path / "one.csv", {"m/a": 60})
    alone = run(path)
    with path.open("a", newline="") as file:
        csv.writer(file).writerows(["l", "b", n, 0.5, "TRUE" if n % 2 else "FALSE"] for n in range(60))
    assert run(path)["results"]["m/a"] == alone["results"]["m/a"]


def test_the_command_reads_compressed_files_and_writes_its_figures(tmp_path: Path) -> None:
    plain = written(tmp_path / "answers.csv", {"m/a": 60})
    packed = tmp_path / "answers.csv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    result = CliRunner().invoke(app, ["calibration", "--csv", str(packed), "--json", str(tmp_path / "figures.json")])
    assert result.exit_code == 0, result.output
    assert "plumbline" in result.output
    assert json.loads((tmp_path / "figures.json").read_text())["results"] == run(plain)["results"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("llm,qset,stated_confidence\nm,a,0.5\n", "has no column correct"),
        ("llm,qset,stated_confidence,correct\nm,a,high,TRUE\n", "line 2: stated_confidence must be a number"),
        ("llm,qset,stated_confidence,correct\nm,a,0.5,maybe\n", "correct TRUE or FALSE"),
        ("llm,qset,stated_confidence,correct\nm,a,nan,TRUE\n", "must be from 0 to 1, not nan"),
        ("llm,qset,stated_confidence,correct\nm,a,95,TRUE\n", "must be from 0 to 1, not 95"),
        ("llm,qset,stated_confidence,correct\nm,a,0.5,TRUE\n", "no group of 40 answers"),
        ("", "has no column"),
    ],
)
def test_a_file_of_another_shape_is_refused_with_its_reason(tmp_path: Path, content: str, complaint: str) -> None:
    (tmp_path / "answers.csv").write_text(content)
    with pytest.raises(MalformedInput, match=complaint):
        run(tmp_path / "answers.csv")


@pytest.mark.parametrize("name", ["missing.csv", "broken.csv.gz", "latin.csv"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "broken.csv.gz").write_bytes(b"no gzip")
    (tmp_path / "latin.csv").write_bytes("llm,qset,stated_confidence,correct\né,a,1,1".encode("latin-1"))
    with pytest.raises(MalformedInput, match=f"{name} cannot be read"):
        run(tmp_path / name)
