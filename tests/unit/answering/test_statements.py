"""Passages → statements."""

from __future__ import annotations

import pytest

from core.answering.statements import MAX_STATEMENT, Statement, sentences, statements
from core.knowledge.passages import passages_of
from core.model.document import Document, DocumentKind
from core.model.text import thread_text
from tests.cases import every_case


def of(text: str, kind: DocumentKind = DocumentKind.PAGE) -> list[Statement]:
    [passage] = passages_of(Document("docs/a.md", "docs", "runbooks", "Title", text, kind))
    return list(statements(passage))


def texts(text: str, kind: DocumentKind = DocumentKind.PAGE) -> list[str]:
    return [statement.text for statement in of(text, kind)]


def test_a_paragraph_is_cut_into_sentences() -> None:
    assert sentences("Stop it. `slipway` waits 2.5 s, e.g. at night. Then\ngo on! Really? Yes") == [
        "Stop it.",
        "`slipway` waits 2.5 s, e.g. at night.",
        "Then go on!",
        "Really?",
        "Yes",
    ]


def test_chinese_sentences_end_without_a_space() -> None:
    assert sentences("先停止服务。再重启！") == ["先停止服务。", "再重启！"]


def test_statements_know_their_heading_and_headings_are_none() -> None:
    found = of("Intro.\n\n## Roll `back`\n\nDo it.")
    assert [(item.text, item.heading) for item in found] == [("Intro.", ""), ("Do it.", "Roll back")]


def test_list_items_lose_their_marker() -> None:
    found = of("Steps:\n\n1. Drain it:\n   ```\n   drain NAME\n   ```\n2. Wait\n\n- other")
    assert [item.text for item in found] == ["Steps:", "Drain it:\n```\ndrain NAME\n```", "Wait", "other"]


def test_code_stands_between_fences_whatever_form_it_had() -> None:
    assert texts("Run\n\n    a\n      b\n\n```sh\nc\n```") == ["Run", "```\na\n  b\n```", "```\nc\n```"]
    for fence in ("````", "~~~"):
        assert texts(f"{fence}\na\n```sh\nb\n```\n{fence}") == ["```\na\nb\n```"], "no fence stands within another"


def test_a_table_row_names_its_cells() -> None:
    assert texts("| Stage | Share |\n|---|---|\n| canary | **5 %** |\n| full | |") == [
        "Stage: canary; Share: 5 %",
        "Stage: full",
    ]


def test_a_cell_is_quoted_as_it_stands() -> None:
    table = r"""
| Do | Command |
|---|---|
| clean | `rm -r /tmp/cache/*` |
| find | `ps aux \| grep java` |
| look | curl /_cat/indices |
"""
    assert texts(table) == [
        "Do: clean; Command: `rm -r /tmp/cache/*`",
        "Do: find; Command: `ps aux | grep java`",
        "Do: look; Command: curl /_cat/indices",
    ]


@pytest.mark.parametrize("header", ["", "| | |\n|---|---|\n"])
def test_where_a_table_has_no_header_no_row_is_taken_for_one(header: str) -> None:
    assert texts(f"{header}| Owner | Ledger |\n| Port | 8080 | 8081 |") == ["Owner: Ledger", "Port: 8080; 8081"]


def test_a_cell_without_a_word_or_a_number_says_nothing() -> None:
    assert texts("| a | b |\n|---|---|\n| - | -- |\n| 1 | - |\n||") == ["a: 1"]


def test_a_cell_beyond_the_header_is_not_lost() -> None:
    assert texts("| a | b |\n|---|---|\n|| 2 | 3 |") == ["b: 2; 3"]


def test_lines_of_a_plain_text_table_are_statements_of_their_own() -> None:
    assert texts("skiff   2 vCPU\nbarge   8 vCPU") == ["skiff   2 vCPU", "barge   8 vCPU"]


def test_of_a_thread_only_replies_that_say_something_count() -> None:
    replies = ["did you retry?", "thanks, works", "use `slipway holds` for that. it lists every hold with its age"]
    assert texts(thread_text("stuck at staging, why?", replies), DocumentKind.THREAD) == [
        "use `slipway holds` for that. it lists every hold with its age"
    ]


@every_case(
    "objection",
    [
        "No, don't do that.",
        "that is wrong",
        "Careful: it loses mail.",
        "Correction:",
        "don’t",
        "It is outdated.",
    ],
)
def test_what_takes_back_what_was_said_is_no_chatter(objection: str) -> None:
    assert texts(thread_text("how?", ["Run `worker restart`.", objection]), DocumentKind.THREAD)[1:] == [objection]


def test_a_thread_that_nobody_answered_is_its_message() -> None:
    assert texts(thread_text("stuck at staging.", ["why?"]), DocumentKind.THREAD) == ["stuck at staging."]


@pytest.mark.parametrize(
    "message",
    ["How do I fix the worker?", "the worker is stuck. anybody knows why? it is urgent", "@bot how do I fix it"],
)
def test_a_question_that_nobody_answered_says_nothing(message: str) -> None:
    for replies in ([], ["thanks, found it"], ["did you look at the dashboard?", "ok :+1:"]):
        assert texts(thread_text(message, replies), DocumentKind.THREAD) == []


def test_a_short_answer_counts_where_there_is_no_longer_one() -> None:
    text = thread_text("how do I fix the worker?", ["which?", "Restart it.", "thanks a lot"])
    assert texts(text, DocumentKind.THREAD) == ["Restart it."]


def test_a_past_incident_does_not_repeat_its_service() -> None:
    text = "All red.\n\nService: search\n\nRoot cause: A rebuild.\n\nFix: Moved it."
    assert texts(text, DocumentKind.INCIDENT) == ["All red.", "Root cause: A rebuild.", "Fix: Moved it."]


def test_a_statement_is_bounded() -> None:
    assert len(texts("word " * 600)[0]) <= MAX_STATEMENT
    long = "\n".join(f"command {n}" for n in range(200))
    [code] = texts(f"```\n{long}\n```")
    assert len(code) <= MAX_STATEMENT + 8
    assert code.endswith("…\n```")
