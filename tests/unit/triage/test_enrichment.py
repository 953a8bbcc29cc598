from __future__ import annotations

import pytest

from core.model.incident import Evidence, EvidenceKind, Explanation, Hypothesis
from core.triage.monitoring import MAX_TEXT, Enrichment, from_explanation


def explanation(*hypotheses: Hypothesis) -> Explanation:
    return Explanation(hypotheses, (), (), ())


def test_without_a_culprit_there_is_nothing_to_add() -> None:
    assert from_explanation(None) == Enrichment()
    assert from_explanation(explanation()) == Enrichment()


def test_every_hypothesis_locates_the_cause_and_the_first_one_gives_the_words() -> None:
    quote = Evidence(EvidenceKind.LOG, "log of login", "unknown kid")
    first = Hypothesis("key rotated", "login", 0.9, (quote,), "", "")
    found = from_explanation(
        explanation(first, Hypothesis("x", "shop", 0.4, (), "", ""), Hypothesis("y", "login", 0.3, (), "", ""))
    )
    assert found.services == pytest.approx({"login": 0.75, "shop": 0.25})
    assert found.text == "key rotated\nunknown kid"


def test_long_evidence_is_cut() -> None:
    assert len(from_explanation(explanation(Hypothesis("x" * 5_000, "login", 0.9, (), "", ""))).text) == MAX_TEXT
