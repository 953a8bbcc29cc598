from __future__ import annotations

import math

from tests.benchmarks.load import percentiles


def test_an_unanswered_question_took_for_ever_and_is_not_left_out() -> None:
    answered = [float(number) for number in range(1, 98)]
    assert percentiles("answer", [*answered, *3 * [math.inf]]) == {
        "answer_p50_s": 51.0,
        "answer_p95_s": 96.0,
        "answer_p99_s": "never",
    }


def test_where_nothing_was_asked_there_is_no_figure() -> None:
    assert set(percentiles("alert", []).values()) == {None}
