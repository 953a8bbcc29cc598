from __future__ import annotations

from dataclasses import replace

from core.model.incident import Evidence, EvidenceKind, Hypothesis
from core.model.trajectory import Finding, Responsibility
from core.rca.incident_signals import survey
from core.rca.merge import merged
from tests.fakes.outage import errors, minutes, observations

SCENE = survey(observations([errors("shop", "stock does not answer", since=-10)]))
PROOF = Evidence(EvidenceKind.LOG, "log of stock", "no space left on device", minutes(-11))
FINDING = Finding("", "The disk of stock is full.", "Free some space.", "stock", Responsibility.DEPENDENCY, ())


def hypothesis(service: str, score: float) -> Hypothesis:
    return Hypothesis(f"A deployment of {service}.", service, score, (), "It was not.", "Look.")


def test_a_finding_about_the_same_service_supports_the_hypothesis_and_adds_its_evidence() -> None:
    first, second = merged([hypothesis("cart", 0.5), hypothesis("stock", 0.4)], FINDING, (PROOF,), 1.0, SCENE)
    assert (first.service, second.service) == ("stock", "cart")
    assert first.score == 0.7
    assert first.evidence == (PROOF,)
    assert first.cause == "A deployment of stock."


def test_another_finding_stands_beside_the_hypotheses_with_its_own_next_check() -> None:
    found = merged([hypothesis("cart", 0.9)], FINDING, (PROOF,), 1.0, SCENE)
    assert [each.service for each in found] == ["cart", "stock"]
    assert found[1].next_check == "Free some space."
    assert found[1].cause == "The disk of stock is full."


def test_fewer_votes_count_for_less() -> None:
    sure, doubtful = (merged([], FINDING, (PROOF,), votes, SCENE)[0].score for votes in (1.0, 0.5))
    assert doubtful == sure / 2


def test_a_cause_does_not_follow_its_effect() -> None:
    late = replace(PROOF, at=minutes(5))
    assert merged([], FINDING, (late,), 1.0, SCENE) == ()


def test_a_finding_without_evidence_that_stands_anywhere_is_not_shown() -> None:
    known = (hypothesis("cart", 0.5),)
    assert merged(known, FINDING, (), 1.0, SCENE) == known


def test_no_more_than_three_are_named() -> None:
    many = [hypothesis(name, 0.9) for name in ("a", "b", "c")]
    assert len(merged(many, FINDING, (PROOF,), 1.0, SCENE)) == 3
