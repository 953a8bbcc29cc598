from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from core.model.errors import MalformedInput
from tests.benchmarks.telemetry import run

SERVICES = ("bank", "shop", "web")
CHANCE = np.random.default_rng(7)


def write_metrics(path: Path, rows: int, fault: float) -> None:
    """The bank's fault lasts from the third point to the fourth, and the time is lost in its callers too."""
    own = 0.1 + 0.001 * CHANCE.standard_normal((len(SERVICES), rows))
    own[0, 2:4] += fault
    spent = np.cumsum(own, axis=0)
    path.parent.mkdir(parents=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["microservice", *SERVICES, *SERVICES])
        table.writerow(["metric", *["latency"] * 3, *["requests"] * 3])
        table.writerow(["statistic", *["Average"] * 3, *["Sum"] * 3])
        table.writerow(["unix_timestamp", *[""] * 6])
        table.writerows([f"{300.0 * row}", *spent[:, row], 10, 10, ""] for row in range(rows))


@pytest.fixture
def petshop(tmp_path: Path) -> Path:
    scenario = tmp_path / "dataset" / "low_traffic"
    write_metrics(scenario / "noissue" / "metrics.csv", 60, 0.0)
    write_metrics(scenario / "test" / "issue_0" / "metrics.csv", 5, 1.0)
    target = {"target": {"node": "web", "metric": "latency", "agg": "Average"}, "root_cause": {"node": "bank"}}
    (scenario / "test" / "issue_0" / "target.json").write_text(json.dumps(target), "utf-8")
    (scenario / "graph.csv").write_text(",bank,shop,web\nbank,0,0,0\nshop,1,0,0\nweb,0,1.0,0\n", "utf-8")
    return tmp_path


def test_every_method_is_measured_on_the_same_issues(petshop: Path) -> None:
    figures = run(petshop)
    assert figures["cases"] == 1
    assert list(figures["results"]) == ["traversal", "ranked_correlation", "plumbline"]
    assert figures["results"]["plumbline"]["top1"] == figures["results"]["traversal"]["top1"] == 1.0
    assert figures["results"]["ranked_correlation"]["top3"] == 1.0
    assert figures["results"]["plumbline"]["by_group"]["low_traffic/latency"] == {"cases": 1, "top1": 1.0, "top3": 1.0}


def test_the_folder_inside_does_as_well(petshop: Path) -> None:
    assert run(petshop / "dataset") == run(petshop)


def test_a_folder_of_another_form_is_refused(tmp_path: Path, petshop: Path) -> None:
    with pytest.raises(MalformedInput, match="No test issue below"):
        run(tmp_path / "nowhere")
    (petshop / "dataset" / "low_traffic" / "graph.csv").unlink()
    with pytest.raises(MalformedInput, match="as PetShop data"):
        run(petshop)
