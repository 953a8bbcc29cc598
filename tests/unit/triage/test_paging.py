"""Whether an incident needs a person is judged by what was known when it began."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from core.model.alert import Acknowledgement, AlertStatus, Severity
from core.model.badge import Badge, Strength
from core.model.findings import PageJudgement, Relation, RelationKind
from core.model.incident import Hop, Incident, IncidentState
from core.triage.paging import (
    ALIKE,
    MIN_LABELS,
    Episode,
    PageHistory,
    PageModel,
    episode_of,
    excess_in,
    facts_in_order,
    fit_paging,
    needed_person,
)
from tests.benchmarks import pages
from tests.cases import every_case
from tests.samples import START, explanation, incident, resolved_incident
from tests.samples.parts import alert

NOW = datetime(2026, 3, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ENDED = replace(resolved_incident(), severity=Severity.WARNING, taken_by="", resolution=None, alerts=())
HELD = PageJudgement(
    Badge(Strength.WEAK, 0.01), "p", (), Severity.WARNING, held_until=ENDED.updated_at + timedelta(days=1)
)


def episode(number: int, *, needed: bool | None = False, alert: str = "disk", **fields: object) -> Episode:
    """An incident a day after the one before, which lasts ten minutes."""
    at = NOW + timedelta(days=number)
    return replace(Episode(f"e{number}", alert, "till", Severity.WARNING, at, at + 10 * MINUTE, needed), **fields)


@every_case(
    ("subject", "needed"),
    [
        (ENDED, False),
        (replace(ENDED, taken_by="Ada"), True),
        (replace(ENDED, hops=(Hop("payments", "", "Ada", "", START),)), True),
        (
            replace(
                ENDED, alerts=(replace(alert(status=AlertStatus.RESOLVED), acknowledged=Acknowledgement("Ada", START)),)
            ),
            True,
        ),
        (replace(ENDED, alerts=(replace(alert(), acknowledged=Acknowledgement("Ada", START, withdrawn=True)),)), False),
        (replace(ENDED, state=IncidentState.OPEN, resolved_at=None), None),
        (ENDED.with_findings(page=HELD), None),  # nobody was told
        (replace(ENDED.with_findings(page=HELD), taken_by="Ada"), True),
        (ENDED.with_findings(page=replace(HELD, held_until=ENDED.resolved_at)), False),
    ],
)
def test_what_people_did_says_whether_a_person_was_needed(subject: Incident, needed: bool | None) -> None:
    assert needed_person(subject) is needed


def test_it_is_learned_from_as_it_was_when_it_began() -> None:
    begun = replace(incident().with_findings(explanation=explanation()), severity=Severity.CRITICAL)
    by_rules = Relation(RelationKind.PART_OF, "other", at=begun.opened_at + MINUTE / 2)
    by_person = begun.with_relation(replace(by_rules, person="Ada"))
    late = replace(alert(), starts_at=begun.opened_at + MINUTE)
    first = replace(alert(), severity=Severity.INFO, starts_at=begun.opened_at)
    unjudged = episode_of(replace(by_person, alerts=(late, first)))
    assert (unjudged.severity, unjudged.has_parent, unjudged.deploying) == (Severity.INFO, False, False)
    by_rule = begun.with_relation(by_rules)
    assert episode_of(by_rule).has_parent
    judged = replace(HELD, severity=Severity.WARNING, has_parent=False, deploying=True)
    found = episode_of(by_rule.with_findings(page=judged))
    assert (found.severity, found.has_parent, found.deploying) == (Severity.WARNING, False, True)


def test_only_what_had_ended_is_known_when_an_incident_begins() -> None:
    long = episode(0, ended_at=NOW + timedelta(days=2))
    facts = [each for _, each in facts_in_order([long, episode(1), episode(3)])]
    assert [each.alone for each in facts] == [0, 0, 2]
    assert [each.others_open for each in facts] == [0, 1, 0]


def test_the_evidence_says_how_the_alert_went_before_and_what_else_is_going_on() -> None:
    history = PageHistory([episode(number) for number in range(14)] + [episode(14, needed=True)])
    new = replace(episode(15, needed=None), deploying=True, ended_at=None)
    other = replace(new, id="other", alert="queue")
    assert history.facts(new, [new, other]).evidence == (
        "14 of the last 15 ended by themselves",
        "usually within 10 min",
        "a deployment is in progress",
        "1 more open on this service",
    )


def test_a_model_needs_outcomes_of_both_kinds_and_enough_of_them() -> None:
    mixed = pages.generate(400, seed=5)
    assert fit_paging(mixed[: MIN_LABELS // 2]) is None
    assert fit_paging([each for each in mixed if each.needed]) is None
    assert fit_paging(mixed) is not None


@pytest.fixture(scope="module")
def model() -> PageModel:
    fitted = fit_paging(pages.generate(1200, seed=5))
    assert fitted is not None
    return fitted


def test_it_is_nearer_to_what_happens_than_the_severity_and_holds_no_critical_one_back() -> None:
    figures, judged = pages.run(pages.generate(900, seed=6), hold_below=0.2)
    results = figures["results"]
    assert results["plumbline"]["auroc"] > results["severity_only"]["auroc"] + 0.1
    assert results["plumbline"]["precision@recall90"] > results["always_page"]["precision@recall90"]
    assert figures["held"]["count"] > 0
    assert figures["held"]["critical"] == 0
    assert not any(each.held for each in judged if each.episode.severity is Severity.CRITICAL)


def test_what_is_critical_new_or_unsure_never_waits(model: PageModel) -> None:
    history = PageHistory([episode(number) for number in range(30)])
    quiet = history.facts(episode(31), [])
    raw = float(model.judged[len(model.judged) // 5])
    assert model.may_wait(raw, 0.01, quiet, 0.2)
    assert model.may_wait(raw, 0.2, replace(quiet, needed=2, alone=1), 0.2), "both limits may be reached"
    assert not model.may_wait(raw, 0.01, replace(quiet, severity=Severity.CRITICAL), 0.2)
    assert not model.may_wait(raw, 0.01, replace(quiet, alone=2), 0.2)
    assert not model.may_wait(raw, None, quiet, 0.2), "it is not calibrated"
    assert not model.may_wait(raw, 0.3, quiet, 0.2)
    assert not model.may_wait(1.0, 0.01, quiet, 0.2), "others like it needed a person"


def test_an_incident_waits_only_for_many_similar_ones_that_went_well(model: PageModel) -> None:
    quiet = PageHistory([episode(number) for number in range(30)]).facts(episode(31), [])
    for count, waits in ((0, False), (10, False), (40, True)):
        calm = replace(model, judged=np.zeros(count), needed=np.zeros(count))
        assert calm.may_wait(0.0, 0.01, quiet, 0.2) is waits


def test_an_incident_is_compared_with_the_past_judgements_nearest_to_its_own(model: PageModel) -> None:
    many = replace(model, judged=np.linspace(0, 1, 600), needed=(np.arange(600) >= 300).astype(float))
    assert many.like(0.5) == (ALIKE, ALIKE // 2)
    assert many.like(0.0) == (ALIKE // 2, 0)


def test_a_stored_incident_is_learned_from_by_its_alert_and_what_was_found() -> None:
    found = episode_of(incident())
    assert (found.alert, found.service, found.needed) == ("PaymentGatewayLatencyHigh", "payment-gateway", None)


def test_each_firing_of_an_alert_that_flaps_counts_once_when_it_was() -> None:
    flapped = replace(episode(0), again=(NOW + 20 * MINUTE, NOW + 23 * 60 * MINUTE))
    facts = PageHistory([flapped]).facts(replace(episode(1), began_at=NOW + 23.5 * 60 * MINUTE), [])
    assert (facts.lately, facts.last_hour) == (3, 1)
    still_open = replace(flapped, id="open", ended_at=None)
    facts = PageHistory().facts(replace(episode(1), began_at=NOW + 23.5 * 60 * MINUTE), [still_open])
    assert (facts.lately, facts.last_hour) == (3, 1)


def test_the_outcome_of_an_alert_that_flapped_counts_once() -> None:
    flapped = replace(episode(0), again=tuple(NOW + number * MINUTE for number in range(1, 9)))
    assert PageHistory([flapped]).facts(episode(1), []).alone == 1


def test_a_stored_incident_knows_when_it_fired_again() -> None:
    again = (START + MINUTE, START + 2 * MINUTE)
    assert episode_of(replace(incident(), reopenings=again)).firings == (incident().opened_at, *again)


@every_case(
    ("text", "excess"),
    [
        ("p99 is 4 s (> 2 s)", 2.0),
        ("Queue holds 900 jobs, above 300", 3.0),
        ("CPU is 96 % > 80 %", 1.2),
        ("p99 is 4 (GreaterThan 2). zone: b.", 2.0),
        ("Free space 5% is below 20%", 4.0),
        ("Requests 2/s (LessThan 10)", 5.0),
        ("0 replicas below 3", None),
        ("The pods are slow.", None),
        ("version 2.4 of 3", None),
        ("", None),
    ],
)
def test_how_far_a_value_is_from_its_threshold_is_read_from_the_alert(text: str, excess: float | None) -> None:
    assert excess_in(text) == (pytest.approx(excess) if excess is not None else None)
