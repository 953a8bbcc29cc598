from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from core.model.incident import Incident, IncidentState
from core.triage.history import RECENT, DuplicateCandidate, duplicate_candidates, evaluate_duplicate
from tests.fakes.outage import CALLS, START, incident, minutes

KNOWN = replace(
    incident(title="shop answers slowly, p99 4.8 s"), id="known", opened_at=minutes(-5), started_at=minutes(-5)
)


def best(of: Incident, *others: Incident) -> DuplicateCandidate | None:
    found = [each for each in duplicate_candidates(of, others, CALLS) if each.convinces]
    return found[0] if found else None


def test_the_same_words_in_the_same_place_a_few_minutes_later_are_the_same_incident() -> None:
    found = best(incident(title="shop answers slowly, p99 5.1 s"), KNOWN)
    assert found is not None
    assert found.incident.id == "known"
    assert found.evidence == (
        "the same text, apart from numbers",
        "the same service, shop",
        "began 5 min after it, which is still open",
    )


def test_a_fault_in_a_service_that_it_depends_on_can_be_the_same_incident() -> None:
    cart = replace(KNOWN, service="cart", title="cart answers slowly")
    found = best(incident(title="shop answers slowly"), cart)
    assert found is not None
    assert "shop depends on cart" in found.evidence


def test_the_same_words_about_a_service_that_has_nothing_to_do_with_it_are_another_incident() -> None:
    assert best(incident(title="shop answers slowly, p99 5.1 s"), replace(KNOWN, service="moon")) is None


def test_other_words_in_the_same_place_at_another_time_are_another_incident() -> None:
    long_ago = replace(KNOWN, title="certificate expires soon", started_at=minutes(-600), opened_at=minutes(-600))
    assert best(incident(title="shop answers slowly"), long_ago) is None


def test_one_that_was_over_a_short_while_ago_can_be_meant_and_one_from_long_ago_cannot() -> None:
    over = replace(KNOWN, state=IncidentState.RESOLVED, resolved_at=minutes(-1))
    old = replace(over, resolved_at=START - RECENT - timedelta(seconds=1))
    found = best(incident(title="shop answers slowly, p99 5.1 s"), over)
    assert found is not None
    assert found.evidence[-1] == "began 5 min after it, which is over"
    assert best(incident(title="shop answers slowly, p99 5.1 s"), old) is None


def test_only_an_earlier_one_can_be_meant_and_never_itself() -> None:
    later = replace(KNOWN, opened_at=minutes(1))
    assert duplicate_candidates(incident(), [incident(), later], CALLS) == []


def test_the_likeliest_comes_first_and_a_rival_makes_it_less_sure() -> None:
    asked = incident(title="shop answers slowly, p99 5.1 s")
    weaker = replace(KNOWN, id="weaker", service="cart", title="cart is slow")
    ranked = duplicate_candidates(asked, [weaker, KNOWN], CALLS)
    assert [each.incident.id for each in ranked] == ["known", "weaker"]
    alone = evaluate_duplicate(asked, ranked[0], [])
    rivalled = evaluate_duplicate(asked, ranked[0], [ranked[1].score])
    assert 0 < rivalled.rce < alone.rce <= 1
    assert alone.coe == 1.0
    assert evaluate_duplicate(replace(asked, service=""), ranked[0], []).coe < 1.0
