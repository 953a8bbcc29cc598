from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.model.errors import MalformedInput
from tests.benchmarks import severity

ROWS = [
    {"alert": f"{thing} in hall {hall}", "summary": f"the {thing} of hall {hall}", "severity": kind}
    for thing, kind in (("tank leaks", "critical"), ("page loads slowly", "warning"), ("page loads oddly", "warning"))
    for hall in range(6)
]


def written(path: Path, rows: list[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_severity_that_texts_tell_is_found_more_often_than_by_the_most_frequent_one(tmp_path: Path) -> None:
    figures = severity.run(written(tmp_path / "alerts.jsonl", ROWS))
    assert figures["cases"] == 18
    assert (figures["suggested"], figures["right"]) == (1.0, 1.0)
    assert figures["most_frequent"] == round(12 / 18, 4)


def test_an_incident_is_not_judged_by_its_twin(tmp_path: Path) -> None:
    twins = [{"title": "a very special tank leaks", "severity": "info"}] * 9
    figures = severity.run(written(tmp_path / "alerts.jsonl", [*ROWS, *twins]))
    assert figures["right"] <= 18 / 27


def test_severities_that_are_none_of_ours_are_left_out(tmp_path: Path) -> None:
    rows = [*ROWS, {"alert": "Watchdog", "severity": "none"}]
    assert severity.run(written(tmp_path / "alerts.jsonl", rows))["cases"] == 18


@pytest.mark.parametrize("rows", [[], [{"alert": "x"}], [{"severity": "critical"}]])
def test_a_file_of_something_else_is_refused(tmp_path: Path, rows: list[dict[str, str]]) -> None:
    with pytest.raises(MalformedInput):
        severity.run(written(tmp_path / "alerts.jsonl", rows))
