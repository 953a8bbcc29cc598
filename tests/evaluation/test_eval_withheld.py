"""`python -m tests.benchmarks withheld` on a corpus of a few pages."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from core.model.errors import MalformedInput
from tests.benchmarks.withheld import FIGURES, holds, print_table, run

TOPICS = [("canary", "promoted"), ("runner", "drained"), ("key", "rotated"), ("cache", "flushed"), ("index", "rebuilt")]
PAGES = {
    f"guides/page-{number}.md": f"# About the {topic}\n\nThe {topic} is {verb} by hand every morning at 0{number}:30."
    for number, (topic, verb) in enumerate(TOPICS)
}
QUESTIONS = [
    {"question": "when is the runner drained by hand?", "answer": "The runner is drained at 01:30."},
    {"question": "when is the key rotated by hand?", "answer": "The key is rotated at 02:30."},
]


def lines(path: Path, rows: list[dict[str, str]]) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return lines(tmp_path / "corpus.jsonl", [{"path": path, "text": text} for path, text in PAGES.items()])


def questions(tmp_path: Path, gold: str = "guides/page-{}.md") -> Path:
    rows = [row | {"gold_doc": gold.format(number)} for number, row in enumerate(QUESTIONS, start=1)]
    return lines(tmp_path / "questions.jsonl", rows)


@pytest.fixture
def figures(tmp_path: Path, corpus: Path) -> dict[str, Any]:
    return run(questions(tmp_path), [corpus])


def test_every_figure_has_its_interval(figures: dict[str, Any]) -> None:
    assert (figures["measure"], figures["engine"], figures["cases"]) == ("answers", "evidence", 2)
    for name in FIGURES:
        low, high = figures[f"{name}_ci"]
        assert 0 <= low <= figures[name] <= high <= 1


def test_easy_questions_are_answered_from_the_right_page_and_its_words(figures: dict[str, Any]) -> None:
    for name in ("supported", "answered_with_gold"):
        assert figures[name] == 1.0
    assert figures["citation_precision"] > 0
    assert figures["answer_recall"] > 0.5


def test_without_the_page_no_other_is_named_as_certain(figures: dict[str, Any]) -> None:
    assert figures["abstained_without_gold"] == 1.0


def test_the_table_shows_every_figure(figures: dict[str, Any]) -> None:
    shown = io.StringIO()
    print_table(figures, Console(width=160, file=shown))
    assert all(name in shown.getvalue() for name in FIGURES)


def test_a_gold_document_that_is_missing_is_refused(tmp_path: Path, corpus: Path) -> None:
    with pytest.raises(MalformedInput, match="elsewhere"):
        run(questions(tmp_path, "elsewhere-{}.md"), [corpus])


@pytest.mark.parametrize(
    "said",
    ["The runner is drained at **01:30**, by hand.", "the `runner` is drained", "## Title\n\n```\nrun --now\n```"],
)
def test_words_in_one_run_are_held_whatever_their_markup(said: str) -> None:
    assert holds("# Title\n\nThe *runner* is drained at 01:30 by hand.\n\n```sh\nrun --now\n```", said)


@pytest.mark.parametrize(
    "said",
    ["The runner is drained at 02:30.", "The runner is not drained.", "The runner is by hand.", "drained runner"],
)
def test_words_that_are_changed_or_left_out_are_not_held(said: str) -> None:
    assert not holds("The runner is drained at 01:30 by hand.", said)
