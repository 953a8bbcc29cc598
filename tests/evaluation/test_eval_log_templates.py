from __future__ import annotations

import csv
from pathlib import Path

import pytest

from core.model.errors import MalformedInput
from tests.benchmarks.log_templates import grouping_accuracy, parsing_accuracy, run

ROWS = [
    *[(f"took {number} ms", "E1", "took <*> ms") for number in range(5)],
    *[(f"shelf {number} is empty", "E2", "shelf <*> is empty") for number in range(5)],
]


def test_both_parsers_are_measured_on_the_same_messages(tmp_path: Path) -> None:
    (tmp_path / "Shop").mkdir()
    with (tmp_path / "Shop" / "Shop_2k.log_structured.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("Content", "EventId", "EventTemplate"), *ROWS])
    figures = run(tmp_path)
    assert figures["cases"] == 1
    assert set(figures["results"]) == {"drain", "plumbline"}
    assert figures["results"]["plumbline"]["grouping_accuracy"] == 1.0
    assert figures["results"]["plumbline"]["systems"]["Shop"]["parsing_accuracy"] == 1.0


def test_a_group_counts_only_if_it_is_whole_and_pure() -> None:
    assert grouping_accuracy([1, 1, 2, 3], ["a", "a", "b", "b"]) == 0.5
    assert grouping_accuracy([1, 1, 1, 1], ["a", "a", "b", "b"]) == 0.0


def test_neighbouring_wildcards_are_one() -> None:
    assert parsing_accuracy(["at <*>", "at <*>"], ["at  <*>:<*>", "by <*>"]) == 0.5


def test_a_folder_of_another_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MalformedInput, match="No system below"):
        run(tmp_path)
    (tmp_path / "Shop").mkdir()
    (tmp_path / "Shop" / "Shop_2k.log_structured.csv").write_text("Text\nhello\n", "utf-8")
    with pytest.raises(MalformedInput, match="Content, EventId and EventTemplate"):
        run(tmp_path)
