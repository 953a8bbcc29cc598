from __future__ import annotations

import pytest

from core.model.badge import Badge, Strength
from core.model.findings import Evidence, EvidenceKind, Explanation, Hypothesis
from core.model.incident import Incident
from core.model.team import Team
from core.triage.managers import MAX_TEXT, Enrichment, from_explanation
from tests.cases import every_case
from tests.samples import incident

GRAPH = {"shop": ("login", "tills"), "login": ("keys",)}
TEAMS = [Team("shop", "Shop", "", frozenset({"shop", "tills"})), Team("login", "Login", "", frozenset({"login"}))]
SURE, UNSURE = Badge(Strength.STRONG), Badge(Strength.MODERATE)


def explained(*hypotheses: Hypothesis, service: str = "", badge: Badge = SURE) -> Incident:
    return incident(service=service, explanation=Explanation(hypotheses, (), (), (), badge=badge))


def test_without_a_culprit_there_is_nothing_to_add() -> None:
    assert from_explanation(incident(), GRAPH, TEAMS) == Enrichment()
    assert from_explanation(explained(), GRAPH, TEAMS) == Enrichment()


def test_every_hypothesis_locates_the_cause_and_the_first_one_gives_the_words() -> None:
    quote = Evidence(EvidenceKind.LOG, "log of login", "unknown kid")
    first = Hypothesis("key rotated", "login", 0.9, (quote,), "", "")
    found = from_explanation(
        explained(first, Hypothesis("x", "shop", 0.4, (), "", ""), Hypothesis("y", "login", 0.3, (), "", "")),
        GRAPH,
        TEAMS,
    )
    assert found.services == pytest.approx({"login": 0.75, "shop": 0.25})
    assert found.text == "key rotated\nunknown kid"


def test_long_evidence_is_cut() -> None:
    assert (
        len(from_explanation(explained(Hypothesis("x" * 5_000, "login", 0.9, (), "", "")), GRAPH, TEAMS).text)
        == MAX_TEXT
    )


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
    found = from_explanation(explained(Hypothesis("x", located, 0.9, (), "", ""), service=service), GRAPH, TEAMS)
    assert found.services == {located: 1.0}


@pytest.mark.parametrize(("service", "located"), [("login", "shop"), ("tills", "shop"), ("login", "tills")])
def test_a_cause_in_a_caller_or_beside_the_service_leaves_the_owner_as_it_is(service: str, located: str) -> None:
    found = explained(Hypothesis("x", located, 0.9, (), "", ""), service=service)
    assert from_explanation(found, GRAPH, TEAMS) == Enrichment()


@pytest.mark.parametrize(("service", "located"), [("login", "keys"), ("shop", "login"), ("tills", "elsewhere")])
def test_a_possible_cause_elsewhere_leaves_the_owner_to_the_team_that_has_the_service(
    service: str, located: str
) -> None:
    found = explained(Hypothesis("x", located, 0.6, (), "", ""), service=service, badge=UNSURE)
    assert from_explanation(found, GRAPH, TEAMS) == Enrichment()


def test_a_possible_cause_elsewhere_is_located_if_its_evidence_shows_that_the_service_suffers() -> None:
    line = Evidence(EvidenceKind.LOG, "log of shop", "login failed")
    found = explained(Hypothesis("x", "login", 0.6, (line,), "", ""), service="shop", badge=UNSURE)
    assert from_explanation(found, GRAPH, TEAMS).services == {"login": 1.0}


@pytest.mark.parametrize("service", ["keys", "unknown", ""])
def test_a_possible_cause_is_located_for_a_service_that_no_team_has(service: str) -> None:
    found = explained(Hypothesis("x", "keys", 0.6, (), "", ""), service=service, badge=UNSURE)
    assert from_explanation(found, GRAPH, TEAMS).services == {"keys": 1.0}


def test_of_possible_causes_those_of_other_teams_count_for_nobody() -> None:
    own, other = Hypothesis("x", "shop", 0.4, (), "", ""), Hypothesis("y", "login", 0.4, (), "", "")
    assert from_explanation(explained(own, other, service="shop", badge=UNSURE), GRAPH, TEAMS).services == {"shop": 0.5}
    assert from_explanation(explained(own, other, service="shop"), GRAPH, TEAMS).services == {"shop": 0.5, "login": 0.5}
