from __future__ import annotations

import pytest

from core.model.findings import Evidence, EvidenceKind, Explanation, Hypothesis
from core.model.incident import Incident
from core.triage.managers import MAX_TEXT, Enrichment, from_explanation
from tests.cases import every_case
from tests.samples import incident

GRAPH = {"shop": ("login", "tills"), "login": ("keys",)}


def explained(*hypotheses: Hypothesis, service: str = "") -> Incident:
    return incident(service=service, explanation=Explanation(hypotheses, (), (), ()))


def test_without_a_culprit_there_is_nothing_to_add() -> None:
    assert from_explanation(incident(), GRAPH) == Enrichment()
    assert from_explanation(explained(), GRAPH) == Enrichment()


def test_every_hypothesis_locates_the_cause_and_the_first_one_gives_the_words() -> None:
    quote = Evidence(EvidenceKind.LOG, "log of login", "unknown kid")
    first = Hypothesis("key rotated", "login", 0.9, (quote,), "", "")
    found = from_explanation(
        explained(first, Hypothesis("x", "shop", 0.4, (), "", ""), Hypothesis("y", "login", 0.3, (), "", "")), GRAPH
    )
    assert found.services == pytest.approx({"login": 0.75, "shop": 0.25})
    assert found.text == "key rotated\nunknown kid"


def test_long_evidence_is_cut() -> None:
    assert len(from_explanation(explained(Hypothesis("x" * 5_000, "login", 0.9, (), "", "")), GRAPH).text) == MAX_TEXT


@every_case(
    ("service", "located"),
    [
        ("login", "keys"),
        ("login", "login"),
        ("shop", "keys"),
        ("", "shop"),
        ("unknown", "shop"),
        ("login", "elsewhere"),
    ],
)
def test_a_cause_in_the_service_or_in_what_it_calls_is_located_there(service: str, located: str) -> None:
    found = from_explanation(explained(Hypothesis("x", located, 0.9, (), "", ""), service=service), GRAPH)
    assert found.services == {located: 1.0}


@pytest.mark.parametrize(("service", "located"), [("login", "shop"), ("tills", "shop"), ("login", "tills")])
def test_a_cause_in_a_caller_or_beside_the_service_leaves_the_owner_as_it_is(service: str, located: str) -> None:
    found = explained(Hypothesis("x", located, 0.9, (), "", ""), service=service)
    assert from_explanation(found, GRAPH) == Enrichment()
