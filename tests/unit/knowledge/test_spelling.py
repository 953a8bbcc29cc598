from __future__ import annotations

import pytest

from core.knowledge.passages import passages_of
from core.knowledge.terms import Encoder, Spelling, spelt
from core.model.document import Document
from tests.cases import every_case

STATISTICS = Encoder.fitted(
    passages_of(
        Document(
            "a/b",
            "a",
            "a",
            "Canary",
            "How to rollback a canary: the retention of logs in Loki, and exit code 86 of the freeze.",
        )
    )
).statistics


@pytest.mark.parametrize(
    ("query", "searched", "corrected"),
    [
        ("how do i rollbak a canery", "how do i rollback a canary", {"rollbak": "rollback", "canery": "canary"}),
        ("whats teh retntion", "whats the retention", {"retntion": "retention"}),
        ("exit cod 86", "exit code 86", {"cod": "code"}),
        ("loki_retntion", "loki_retention", {"loki_retntion": "loki_retention"}),
    ],
)
def test_one_slip_in_a_word_is_mended_by_the_words_of_the_corpus(
    query: str, searched: str, corrected: dict[str, str]
) -> None:
    found = spelt(query, STATISTICS)
    assert (found.query, found.corrected) == (searched, corrected)


@pytest.mark.parametrize(
    "query", ["how do I rollback a canary?", "is Jenkins there", "exit code 87", "KUBE_FOO and f00"]
)
def test_words_that_are_known_or_like_no_other_stay(query: str) -> None:
    assert spelt(query, STATISTICS) == Spelling(query)


@every_case(
    ("query", "known"),
    [
        ("Wie lange werden Logs in Loki aufbewahrt?", "Logs Loki"),
        ("Was bedeutet Exit Code 86?", "Exit Code 86"),
        ("Wann läuft der Freeze?", "Freeze"),
        ("Comment faire un rollback d'un canary ?", "rollback canary"),
        ("¿Cómo hago un rollback?", "rollback"),
    ],
)
def test_of_a_question_in_another_language_the_known_words_are_searched_for(query: str, known: str) -> None:
    assert spelt(query, STATISTICS) == Spelling(known, foreign=True)
