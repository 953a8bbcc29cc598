"""`python -m tests.benchmarks ccf` on a file of a few made-up questions."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from core.model.errors import MalformedInput
from tests.benchmarks.ccf import print_table, run
from tests.benchmarks.ccf_corpus import Case, silver_corpus
from tests.benchmarks.ccf_lexicon import Keywords, Lexicon
from tests.benchmarks.ccf_plumbline import Choices, Trial, chosen, ingested

pytestmark = pytest.mark.external  # a reproduction of a paper, which the product does not run

METHODS = ["bm25", "dense_svd", "hybrid", "hybrid_reranker", "evidence_chain", "plumbline", "plumbline_selective"]
FIGURES = {
    *("recall@1", "recall@3", "recall@5", "recall@10", "mrr", "correctness", "citation_precision", "hallucination"),
    *("coverage", "hallucination_answered", "tokens_mean", "correctness_ci", "hallucination_ci"),
    *("p50_ms", "p95_ms", "cpu_p50_ms", "cpu_p95_ms"),
}
QUESTIONS = {
    "ferry": ["渡轮的班次如何查询？", "渡轮票价是多少", "渡轮延误怎么办", "如何取消渡轮订票", "Ferry F7 渡轮载客多少"],
    "depot": [
        "仓库的货架如何编号？",
        "仓库盘点多久一次",
        "仓库温度告警怎么办",
        "如何登记仓库入库",
        "Depot D4 仓库面积多少",
    ],
    "kiosk": [
        "售票亭如何重启？",
        "售票亭打印机缺纸",
        "售票亭屏幕黑屏怎么办",
        "如何升级售票亭软件",
        "Kiosk K2 售票亭密码",
    ],
}
CASES = [Case(question, family) for family, questions in QUESTIONS.items() for question in questions]


@pytest.fixture(scope="module", autouse=True)
def few_blocks() -> Iterator[None]:
    """Fewer corpora are made; what is measured of each is the same."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tests.benchmarks.ccf_plumbline.BLOCKS", 3)
        yield


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("ccf") / "questions.jsonl"
    rows = [{"id": n, "query": case.question, "document": case.family} for n, case in enumerate(CASES, start=1)]
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    return run(path, [Lexicon.NONE, Lexicon.MINED])


def test_every_method_is_measured_with_every_lexicon(figures: dict[str, Any]) -> None:
    assert list(figures["results"]) == ["none", "mined"]
    assert (figures["cases"], figures["engine"], figures["seed"]) == (15, "evidence", 7)
    assert figures["families"] == {"depot": 5, "ferry": 5, "kiosk": 5}
    for results in figures["results"].values():
        assert list(results) == METHODS
        assert all(row.keys() >= FIGURES for row in results.values())


def test_most_questions_that_name_their_family_are_answered_right_though_the_corpus_is_too_small_to_teach(
    figures: dict[str, Any],
) -> None:
    row = figures["results"]["none"]["plumbline"]
    assert row["coverage"] == 1.0
    assert row["correctness"] >= 0.75
    assert row["correctness"] + row["hallucination"] == pytest.approx(1.0, abs=2e-4)
    assert {"gain", "gain_ci"} <= row.keys()


def test_every_method_but_the_selective_one_answers_every_question(figures: dict[str, Any]) -> None:
    results = figures["results"]["none"]
    assert all(results[method]["coverage"] == 1.0 for method in METHODS[:-1])
    assert results["plumbline_selective"]["coverage"] > 0.5


def test_what_was_not_answered_is_neither_right_nor_hallucinated(figures: dict[str, Any]) -> None:
    for row in (figures["results"][lexicon]["plumbline_selective"] for lexicon in ("none", "mined")):
        assert row["correctness"] + row["hallucination"] == pytest.approx(row["coverage"], abs=2e-4)


def test_a_chain_cites_one_family_so_its_precision_is_its_correctness(figures: dict[str, Any]) -> None:
    row = figures["results"]["mined"]["evidence_chain"]
    assert row["citation_precision"] == row["correctness"]


def test_every_chunk_that_plumbline_cites_is_of_the_family_that_it_answers_with() -> None:
    with ingested(CASES[1:], Lexicon.NONE, Choices(0.0, None)) as plumbline:
        replies = [plumbline.reply(case.question) for case in CASES]
    assert any(reply.cited for reply in replies)
    assert all(chunk.family == reply.family for reply in replies for chunk in reply.cited)


def test_the_silver_corpus_has_a_profile_for_each_family_and_a_chunk_for_each_question() -> None:
    chunks = silver_corpus(CASES, {"ferry": ("渡轮", "F7")})
    assert [chunk.id for chunk in chunks if chunk.profile] == ["profile-depot", "profile-ferry", "profile-kiosk"]
    assert len(chunks) == 3 + len(CASES)
    assert all(("渡轮, F7" in chunk.text) == (chunk.family == "ferry") for chunk in chunks)


def test_nothing_of_the_tested_question_is_in_the_corpus() -> None:
    tested, rest = CASES[0], CASES[1:]
    keywords = Keywords.chosen(Lexicon.MINED, rest)
    assert all("班次" not in chunk.text for chunk in silver_corpus(rest, keywords.lists()))
    assert "班次" in tested.question


def test_keywords_are_found_as_written_but_not_within_longer_words() -> None:
    keywords = Keywords({"a": {"MU": 1.0, "日志": 1.0}, "b": {"uMAC": 1.0}})
    assert keywords.shares("uMAC是什么", ["a", "b"]).tolist() == [0.0, 1.0]
    assert keywords.shares("mu的日志在umac哪里", ["a", "b"]).tolist() == pytest.approx([2 / 3, 1 / 3])
    assert keywords.shares("什么", ["a", "b"]).tolist() == [0.5, 0.5]


def test_what_is_asked_is_what_the_product_ingested_without_the_question() -> None:
    with ingested(CASES[1:], Lexicon.NONE, Choices(0.0, None)) as plumbline:
        reply = plumbline.reply(CASES[0].question)
    assert reply.family == "ferry"
    assert len(reply.cited) >= 2
    assert all(CASES[0].question not in chunk.text for chunk in reply.ranking)


def test_a_lead_below_the_threshold_is_no_answer() -> None:
    with ingested(CASES[1:], Lexicon.NONE, Choices(1.01, None)) as plumbline:
        assert plumbline.reply(CASES[0].question).family == "ferry"
        assert plumbline.selective_reply(CASES[0].question).family == ""


def test_the_threshold_answers_most_of_what_it_was_chosen_by() -> None:
    trials = [Trial(lead / 100, 0.5, correct=True) for lead in range(100)]
    threshold = Choices.from_trials(trials).threshold
    assert sum(trial.lead >= threshold for trial in trials) == 78


def test_what_is_chosen_for_a_question_comes_from_questions_of_other_blocks() -> None:
    spoilt = [Case("?", "ferry"), *CASES[1:]]
    first, second = chosen(CASES, Lexicon.NONE), chosen(spoilt, Lexicon.NONE)
    assert first[0].threshold == second[0].threshold
    assert len(first) == len(CASES)


def test_the_tables_show_every_method_and_how_the_hand_lists_were_written(figures: dict[str, Any]) -> None:
    shown = io.StringIO()
    print_table(figures, Console(width=80, file=shown))
    assert all(shown.getvalue().count(method) >= 2 for method in METHODS)
    assert "…" not in shown.getvalue()
    assert Lexicon.HAND.label == "written with the questions in view"


@pytest.mark.parametrize(
    "rows", [[("a?", "x"), ("b?", "x")], [("a?", "x"), ("b?", "x"), ("c?", "y")], [("a?", "x"), ("b?", "y")]]
)
def test_a_file_that_cannot_leave_a_question_out_is_refused(rows: list[tuple[str, str]], tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(json.dumps({"query": query, "document": family}) for query, family in rows))
    with pytest.raises(MalformedInput, match="two families"):
        run(path)


def test_an_empty_question_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(json.dumps({"query": query, "document": query[:1]}) for query in ("", "", "x?", "x!")))
    with pytest.raises(MalformedInput, match="empty"):
        run(path)
