"""`plumbline eval answers` on questions with keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.commands.demo import SAMPLE_COMPANY
from bot.evaluation.answers import MethodReply, cases_of, figures_of, run
from core.model.errors import MalformedInput
from tests.benchmarks.answer_baselines import beside
from tests.benchmarks.asked_model import AskedModel, truth_of
from tests.fakes.recordings import DATA

PAGES = {
    "guides/runner.md": "# Runners\n\nIntroduction.\n\n## Drain a runner\n\nTo drain the runner, run `drain --now`.",
    "guides/key.md": "# Keys\n\nThe signing key is rotated on Mondays.",
    "guides/cache.md": "# Caches\n\nThe cache is flushed by hand.",
}
QUESTIONS = [
    {"id": "1", "question": "how do I drain the runner?", "key": r"drain\W+now", "kind": "howto"},
    {"id": "2", "question": "when is the signing key rotated?", "key": "on Mondays", "key_must": ["signing key"]},
    {"id": "3", "question": "what does the canteen serve on Friday?", "key": None},
]


def written(path: Path, rows: list[Any]) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return written(tmp_path / "corpus-small.jsonl", [{"path": path, "text": text} for path, text in PAGES.items()])


def test_plumbline_and_both_baselines_are_measured_by_what_they_show(tmp_path: Path, corpus: Path) -> None:
    questions = written(tmp_path / "questions.jsonl", QUESTIONS)
    figures = beside(run(questions, [corpus]), cases_of(questions), [corpus])
    assert figures["cases"] == 3
    for found in figures["results"].values():
        assert found["states"] == 1.0
    assert figures["results"]["plumbline"]["abstained"] == 1.0
    assert figures["results"]["bm25_section"]["abstained"] == 0.0
    assert {name: row["cases"] for name, row in figures["by_kind"]["howto"].items()} == {
        "plumbline": 1,
        "bm25_section": 1,
        "bm25_sections": 1,
        "bm25_quotes": 1,
    }


def test_each_figure_counts_the_questions_that_it_is_about(tmp_path: Path) -> None:
    with_answer, other, without = cases_of(written(tmp_path / "questions.jsonl", QUESTIONS))
    figures = figures_of(
        [
            MethodReply(with_answer, "run drain --now", certain=True),
            MethodReply(other, "no idea", ("the signing key is rotated on Mondays",)),
            MethodReply(without, "Fish.", certain=True),
        ]
    )
    assert figures["states"] == 0.5
    assert figures["states_anywhere"] == 1.0
    assert figures["certain_precision"] == 0.5
    assert figures["certain_share"] == 0.5
    assert figures["hedged_right"] == 0.0
    assert figures["abstained"] == 0.0
    assert figures["wrongly_abstained"] == 0.0
    assert figures["words"] == 2


def test_a_follow_up_is_asked_after_its_first_turn(tmp_path: Path) -> None:
    rows = [*QUESTIONS, {"id": "4", "question": "and by whom?", "key": "by hand", "after": "2"}]
    found = cases_of(written(tmp_path / "questions.jsonl", rows))
    assert [case.before for case in found] == [(), (), (), ("when is the signing key rotated?",)]


def test_every_expression_has_to_match(tmp_path: Path) -> None:
    [case] = cases_of(written(tmp_path / "questions.jsonl", [{"question": "q", "key": "one", "key_must": ["two"]}]))
    assert case.stated_in("ONE\nand two")
    assert not case.stated_in("one and three")


def test_a_key_that_is_no_expression_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MalformedInput, match="regular expression"):
        cases_of(written(tmp_path / "questions.jsonl", [{"question": "q", "key": "("}]))


def test_answers_of_a_language_model_that_is_right_are_paired(tmp_path: Path) -> None:
    pages, questions = tmp_path / "pages.jsonl", tmp_path / "questions.jsonl"
    documents = sorted((SAMPLE_COMPANY / "documents" / "deployment").glob("*.md"))
    pages.write_text(
        "".join(json.dumps({"path": each.name, "text": each.read_text("utf-8")}) + "\n" for each in documents)
    )
    rows = [json.loads(line) for line in (DATA / "newcomer_questions.jsonl").read_text("utf-8").splitlines()]
    asked = [each for each in rows if each["id"] in {"s-01", "s-41", "s-47", "s-50"}]
    questions.write_text(
        "".join(json.dumps({"question": each["question"], "key": each["key"] or ""}) + "\n" for each in asked)
    )
    figures = run(questions, [pages], llm=AskedModel(simulate=1.0).opened(map(truth_of, cases_of(questions))))
    assert figures["results"].keys() >= {"evidence", "model", "plumbline"}
    assert figures["cases"] == 4
    assert 1 <= figures["asked"] <= figures["calls"]
    assert figures["paired"]["model"]["lost"] == 0


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("set the --force flag", "set the `--force` [flag](https://docs.example/flags)"),
        ("don't drain it & wait", "> don’t **drain** it &amp; wait"),
        ("stage 1 5 minutes", "| stage 1 | 5 minutes |"),
        ("my_key is read", "<b>my_key</b> is\nread"),
    ],
)
def test_a_key_also_matches_the_words_of_a_text(key: str, text: str, tmp_path: Path) -> None:
    [case] = cases_of(written(tmp_path / "questions.jsonl", [{"question": "q", "key": key}]))
    assert case.stated_in(text)
    assert not case.stated_in(text[: len(text) // 2])
