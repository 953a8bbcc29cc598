from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from core.model.findings import BlamedChange, Evidence, EvidenceKind, Hypothesis, Origin
from core.model.language_model import Ending, Finding, Responsibility, Trajectory
from core.rca.agent.conclusion import MergedCauses, compared
from core.rca.incident_signals import IncidentSignals, survey
from tests.fakes.outage import change, errors, minutes, observations

CHANGE = change("C-1", "stock", -12, "Smaller disk")
SEEN = observations([errors("shop", "stock does not answer", since=-10)], changes=[CHANGE])


@cache
def scene() -> IncidentSignals:
    return survey(SEEN)


PROOF = Evidence(EvidenceKind.LOG, "log of stock", "no space left on device", minutes(-11))
FINDING = Finding(
    "",
    "The disk of stock is full.",
    "Free some space.",
    "stock",
    Responsibility.DEPENDENCY,
    (),
    disproof="It has space.",
)
BLAMING = replace(FINDING, change="C-1")


def hypothesis(service: str, score: float, change_id: str = "") -> Hypothesis:
    blamed = BlamedChange(change_id, "deploy", "Update", "", minutes(-12), (service,)) if change_id else None
    return Hypothesis(f"A deployment of {service}.", service, score, (), "It was not.", "Look.", change=blamed)


def verdict(
    hypotheses: list[Hypothesis],
    finding: Finding = FINDING,
    *others: Finding,
    right: float = 0.8,
    evidence: tuple[Evidence, ...] = (PROOF,),
) -> MergedCauses:
    trajectory = Trajectory((), Ending.FINALISED, finding, (finding, *others), "local-8b")
    return compared(hypotheses, trajectory, evidence, right, scene(), SEEN)


def test_a_finding_where_the_evidence_has_no_cause_is_the_cause() -> None:
    found = verdict([])
    (cause,) = found.hypotheses
    assert (cause.cause, cause.solution, cause.disproof, cause.evidence, cause.found_by) == (
        "The disk of stock is full.",
        "Free some space.",
        "It has space.",
        (PROOF,),
        "local-8b",
    )
    assert (found.by_model, found.dissent) == (True, False)


@pytest.mark.parametrize(
    ("known", "finding"),
    [
        (replace(hypothesis("stock", 0.5), cause="stock: disk is full"), FINDING),
        (replace(hypothesis("stock", 0.5), evidence=(PROOF,)), replace(FINDING, evidence=("space left on device",))),
        (hypothesis("shop", 0.5, "C-1"), BLAMING),
    ],
)
def test_a_finding_that_names_the_first_cause_adds_its_evidence_and_its_solution(
    known: Hypothesis, finding: Finding
) -> None:
    found = verdict([known, hypothesis("cart", 0.4)], finding)
    first, second = found.hypotheses
    assert first == replace(
        known, evidence=(PROOF,), solution="Free some space.", responsibility=Responsibility.DEPENDENCY
    )
    assert second == hypothesis("cart", 0.4)
    assert (found.by_model, found.dissent) == (False, False)


def test_another_fault_of_the_same_service_is_a_cause_of_its_own() -> None:
    known = replace(hypothesis("stock", 0.3), cause="The certificate of stock has expired.")
    found = verdict([known])
    assert [each.cause for each in found.hypotheses] == [FINDING.root_cause, known.cause]
    assert (found.by_model, found.dissent) == (True, True)


def test_a_finding_explains_what_the_evidence_only_knows_the_place_of() -> None:
    sign = Evidence(EvidenceKind.METRIC, "metrics of stock", "disk_used from 40 to 100", minutes(-11))
    known = replace(hypothesis("stock", 0.6), origin=Origin.SERVICE, evidence=(sign,))
    found = verdict([known, hypothesis("cart", 0.4)])
    first, second = found.hypotheses
    assert (first.cause, first.evidence, first.found_by) == (FINDING.root_cause, (PROOF, sign), "local-8b")
    assert second == hypothesis("cart", 0.4)
    assert (found.by_model, found.dissent) == (True, False)


@pytest.mark.parametrize("finding", [FINDING, replace(FINDING, change="C-2")])
def test_another_change_or_none_is_another_cause_in_the_same_service(finding: Finding) -> None:
    found = verdict([hypothesis("stock", 0.5, "C-1")], finding)
    assert found.dissent
    assert {each.cause for each in found.hypotheses} == {"A deployment of stock.", "The disk of stock is full."}


@pytest.mark.parametrize(("score", "first"), [(0.95, "cart"), (0.4, "stock")])
def test_of_two_causes_the_likelier_is_first_and_the_other_is_kept(score: float, first: str) -> None:
    found = verdict([hypothesis("cart", score)])
    assert {each.service for each in found.hypotheses} == {"cart", "stock"}
    assert found.hypotheses[0].service == first
    assert found.by_model is (first == "stock")


def test_a_skill_that_is_not_proven_moves_no_cause_of_the_evidence() -> None:
    found = verdict([hypothesis("cart", 0.55), hypothesis("stock", 0.4)], right=0.0)
    assert [each.service for each in found.hypotheses] == ["cart", "stock"]


def test_a_choice_of_the_second_cause_is_a_dissent_about_what_the_evidence_knows() -> None:
    known = replace(hypothesis("stock", 0.3), cause="stock: disk is full")
    found = verdict([hypothesis("cart", 0.4), known], right=0.9)
    assert [each.service for each in found.hypotheses] == ["stock", "cart"]
    assert (found.hypotheses[0].found_by, found.hypotheses[0].solution) == ("", "Free some space.")


def test_fewer_samples_count_for_less() -> None:
    other = replace(FINDING, service="vault")
    sure, doubtful = (verdict([], FINDING, *others).hypotheses[0].score for others in ((), (other,)))
    assert doubtful == pytest.approx(sure / 2)


def test_a_cause_does_not_follow_its_effect() -> None:
    late = replace(PROOF, at=minutes(5))
    known = [hypothesis("cart", 0.4)]
    assert verdict([], evidence=(late,)).hypotheses == ()
    assert verdict(known, evidence=(late,)) == MergedCauses(tuple(known), dissent=False, by_model=False)


def test_lines_from_after_the_first_sign_say_so_and_are_against_a_cause_that_has_earlier_ones() -> None:
    late = replace(PROOF, at=minutes(5), quote="stock is gone")
    (cause,) = verdict([], evidence=(PROOF, late)).hypotheses
    assert cause.evidence == (PROOF,)
    assert [(each.source, each.quote) for each in cause.contradicting] == [
        ("log of stock, after the first sign", "stock is gone")
    ]


def test_earlier_trouble_of_a_service_is_not_against_its_own_fault() -> None:
    seen = observations([errors("stock", "disk is nearly full", since=-10)])
    trajectory = Trajectory((), Ending.FINALISED, FINDING, (FINDING,), "local-8b")
    evidence = (replace(PROOF, at=minutes(-7)),)
    (cause,) = compared([], trajectory, evidence, 0.8, survey(seen), seen).hypotheses
    assert cause.contradicting == ()


def test_no_more_than_three_are_named_and_both_firsts_are_among_them() -> None:
    found = verdict([hypothesis(name, 0.3) for name in ("a", "b", "c")])
    assert len(found.hypotheses) == 3
    assert {"a", "stock"} <= {each.service for each in found.hypotheses}


def test_a_change_that_is_blamed_is_told_with_its_title_and_time() -> None:
    (cause,) = verdict([], BLAMING).hypotheses
    assert cause.change is not None
    assert (cause.change.id, cause.change.title, cause.change.at) == ("C-1", "Smaller disk", CHANGE.at)


def test_no_line_is_for_and_against_a_cause() -> None:
    against = replace(PROOF, source="log of stock, in normal times")
    other = Evidence(EvidenceKind.LOG, "log of stock", "writes fail on /data", minutes(-11))
    known = replace(hypothesis("stock", 0.5), cause=FINDING.root_cause, contradicting=(against,))
    for each in (known, replace(known, origin=Origin.SERVICE, contradicting=()), replace(known, evidence=(PROOF,))):
        for evidence in ((PROOF,), (PROOF, other)):
            (cause, *_) = verdict([each], evidence=evidence).hypotheses
            assert cause.evidence, (each, evidence)
            assert not {line.quote for line in cause.evidence} & {line.quote for line in cause.contradicting}
    disputed = verdict([known], evidence=(PROOF, other)).hypotheses[0]
    assert (disputed.evidence, disputed.contradicting) == ((other,), (against,))
