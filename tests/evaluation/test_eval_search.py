"""`python -m tests.benchmarks search` on a corpus of a few pages."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bot.evaluation.report import bootstrap_interval
from core.model.errors import MalformedInput
from tests.benchmarks.search import print_table, run

METHODS = ["tfidf", "bm25", "plumbline"]
PAGES = {
    f"guides/page-{n}.md": f"---\ntitle: Page {n}\n---\n\n# About {topic}\n\nThe {topic} is {verb} by hand every morning."
    for n, (topic, verb) in enumerate(
        [("canary", "promoted"), ("runner", "drained"), ("key", "rotated"), ("cache", "flushed"), ("index", "rebuilt")]
    )
}
QUESTIONS = [
    {"question": "when is the runner drained?", "gold_doc": "guides/page-1.md"},
    {"question": "rotate the key", "gold_doc": "guides/page-2.md"},
    {"question": "index rebuild", "gold_doc": "guides/page-4.md"},
]


def lines(path: Path, rows: list[dict[str, str]]) -> Path:
    text = "\n".join(json.dumps(row) for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return lines(tmp_path / "corpus.jsonl.gz", [{"path": path, "text": text} for path, text in PAGES.items()])


@pytest.fixture
def figures(tmp_path: Path, corpus: Path) -> dict[str, Any]:
    unanswerable = lines(tmp_path / "none.jsonl", [{"question": "who plays football?"}, {"question": "lunch menu"}])
    return run(lines(tmp_path / "questions.jsonl", QUESTIONS), [corpus], unanswerable)


def test_every_method_is_measured_in_the_same_run(figures: dict[str, Any]) -> None:
    assert list(figures["results"]) == METHODS
    assert (figures["engine"], figures["cases"], figures["documents"], figures["passages"]) == ("evidence", 3, 5, 5)
    for row in figures["results"].values():
        assert {"recall@1", "recall@3", "recall@5", "mrr", "p50_ms", "p95_ms", "recall@1_ci"} <= row.keys()


def test_an_easy_corpus_is_answered_wholly(figures: dict[str, Any]) -> None:
    assert figures["results"]["plumbline"]["recall@1"] == figures["results"]["plumbline"]["mrr"] == 1.0
    assert figures["results"]["plumbline"]["recall@1_ci"] == [1.0, 1.0]


def test_abstention_is_measured_at_one_threshold(figures: dict[str, Any]) -> None:
    assert figures["abstention"]["answered"] == 1.0
    assert figures["abstention"]["abstained"] == 1.0
    assert figures["abstention"]["unanswerable"] == 2


def test_a_second_corpus_is_searched_too(tmp_path: Path, corpus: Path) -> None:
    other = lines(tmp_path / "other.jsonl", [{"path": "lunch.md", "text": "# Lunch\n\nSoup is served at noon."}])
    questions = lines(tmp_path / "questions.jsonl", [{"question": "soup at noon", "gold_doc": "lunch.md"}])
    figures = run(questions, [corpus, other])
    assert figures["documents"] == 6
    assert figures["results"]["plumbline"]["recall@1"] == 1.0
    assert "abstention" not in figures


def test_a_gold_document_that_is_missing_is_a_miss(tmp_path: Path, corpus: Path) -> None:
    questions = lines(tmp_path / "questions.jsonl", [{"question": "drain the runner", "gold_doc": "elsewhere.md"}])
    row = run(questions, [corpus])["results"]["plumbline"]
    assert row["recall@5"] == row["mrr"] == 0.0


def test_the_table_shows_every_method(figures: dict[str, Any]) -> None:
    shown = io.StringIO()
    print_table(figures, Console(width=160, file=shown))
    assert all(method in shown.getvalue() for method in METHODS)


@pytest.mark.parametrize("content", ["{", "[]", '{"question": "no gold"}', ""])
def test_files_that_are_not_as_described_are_refused(content: str, tmp_path: Path, corpus: Path) -> None:
    questions = tmp_path / "questions.jsonl"
    questions.write_text(content)
    with pytest.raises(MalformedInput, match=r"questions\.jsonl"):
        run(questions, [corpus])


def test_a_file_that_is_missing_is_refused(tmp_path: Path, corpus: Path) -> None:
    with pytest.raises(MalformedInput, match="missing"):
        run(tmp_path / "missing.jsonl", [corpus])


def test_an_interval_holds_the_mean_and_narrows_with_more_cases() -> None:
    few, many = bootstrap_interval([0.0, 1.0] * 5), bootstrap_interval([0.0, 1.0] * 500)
    for low, high in (few, many):
        assert low <= 0.5 <= high
    assert many[1] - many[0] < few[1] - few[0]
