"""The facts that a judgement rests on, and the limits of what is judged by them, one by one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import log

import numpy as np
import pytest

from core.model.badge import Evaluation
from core.model.incident import Severity
from core.triage.paging import (
    PRIOR_FILE,
    Episode,
    Facts,
    PageHistory,
    PageModel,
    facts_in_order,
    fit_paging,
    fitted_to,
    has_enough,
    judged_out_of_fold,
    prior,
    prior_probability,
)
from tests.cases import every_case

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
CALM = Facts(Severity.WARNING, 0, 0, 0.5, 0.5, 0.5, 0, 0, None, 0, 0, deploying=False, has_parent=False)
FLAT = PageModel(np.zeros(15), np.ones(15), np.zeros(15), 0.0, np.zeros(400), np.zeros(400))


def episode(name: str, at: datetime = NOW, **fields: object) -> Episode:
    """An incident of one alert that lasted ten minutes and ended by itself."""
    begun = Episode(name, "disk", "till", Severity.WARNING, at, at + 10 * MINUTE, needed=False)
    return replace(begun, **fields)


def many(outcomes: Sequence[bool], apart: timedelta = DAY) -> list[Episode]:
    """Incidents of the same alert with these outcomes, one after the other."""
    return [
        episode(f"e{number:03}", NOW + number * apart, needed=needed, excess=2.0 if needed else None)
        for number, needed in enumerate(outcomes)
    ]


def new(**fields: object) -> Episode:
    return replace(episode("new", ended_at=None, needed=None), **fields)


# --- the numbers that the model reads ---------------------------------------------------------------------------------


def test_features_of_an_incident_of_which_nothing_is_known_are_neutral() -> None:
    assert CALM.features == (0, 0, 0, 0, 0, 0, 0, 0, pytest.approx(log(1441)), 0, 0, 0, 0, 0, 1)


@every_case(
    ("fields", "index", "value"),
    [
        ({"severity": Severity.CRITICAL}, 0, 1.0),
        ({"severity": Severity.INFO}, 1, 1.0),
        ({"alert_share": 0.8}, 2, log(4)),
        ({"recent_share": 0.2}, 3, -log(4)),
        ({"service_share": 0.75}, 4, log(3)),
        ({"lately": 3}, 6, log(4)),
        ({"last_hour": 1}, 7, log(2)),
        ({"minutes": 9.0}, 8, log(10)),
        ({"minutes": 0.0}, 8, 0.0),
        ({"others_open": 4}, 9, log(5)),
        ({"just_began": 2}, 10, log(3)),
        ({"deploying": True}, 11, 1.0),
        ({"has_parent": True}, 12, 1.0),
        ({"excess": 4.0}, 13, log(4)),
        ({"excess": 0.5}, 13, 0.0),  # below the threshold says no more than at it
        ({"excess": 1_000.0}, 13, log(10)),  # from ten times on, more is no worse
    ],
)
def test_each_fact_has_a_feature_of_its_own(fields: dict[str, object], index: int, value: float) -> None:
    features = replace(CALM, **fields).features
    assert features[index] == pytest.approx(value)
    assert [one for at, one in enumerate(features) if at != index] == [
        one for at, one in enumerate(CALM.features) if at != index
    ]


def test_known_outcomes_of_either_kind_are_counted_together_and_end_the_novelty() -> None:
    for needed, alone in ((2, 3), (5, 0), (0, 5)):
        features = replace(CALM, needed=needed, alone=alone).features
        assert (features[5], features[14]) == (pytest.approx(log(6)), 0.0)
    assert replace(CALM, needed=1).features[14] == replace(CALM, alone=1).features[14] == 0.0


# --- the reasons that people read -------------------------------------------------------------------------------------

UNKNOWN = "no earlier one has a known outcome"


@every_case(
    ("fields", "reasons"),
    [
        ({}, (UNKNOWN,)),
        ({"severity": Severity.CRITICAL}, ("its severity is critical", UNKNOWN)),
        ({"severity": Severity.CRITICAL, "needed": 1}, ("1 of the last 1 needed a person",)),
        ({"needed": 1}, ("1 of the last 1 needed a person",)),
        ({"alone": 1}, ("1 of the last 1 ended by themselves",)),
        ({"needed": 2, "alone": 2}, ("2 of the last 4 ended by themselves",)),
        ({"needed": 3, "alone": 2}, ("3 of the last 5 needed a person",)),
        ({"needed": 2, "alone": 2, "minutes": 7.4}, ("2 of the last 4 ended by themselves",)),
        (
            {"needed": 1, "alone": 2, "minutes": 7.4},
            ("2 of the last 3 ended by themselves", "usually within 7 min"),
        ),
        ({"alone": 2, "minutes": None}, ("2 of the last 2 ended by themselves",)),
        ({"needed": 2, "alone": 1, "minutes": 7.4}, ("2 of the last 3 needed a person",)),
        ({"has_parent": True}, ("part of another open incident", UNKNOWN)),
        ({"deploying": True}, ("a deployment is in progress", UNKNOWN)),
        ({"lately": 1}, (UNKNOWN,)),
        ({"lately": 2}, ("fired 2 times in the 24 h before", UNKNOWN)),
        ({"others_open": 1}, ("1 more open on this service", UNKNOWN)),
        ({"others_open": 1, "has_parent": True}, ("part of another open incident", UNKNOWN)),
        ({"just_began": 1}, (UNKNOWN,)),
        ({"just_began": 2}, ("2 other incidents began within 10 min", UNKNOWN)),
        ({"excess": 1.0}, (UNKNOWN,)),
        ({"excess": 0.4}, (UNKNOWN,)),
        ({"excess": 1.24}, ("1.2 times its threshold", UNKNOWN)),
    ],
)
def test_a_reason_is_given_where_it_says_something(fields: dict[str, object], reasons: tuple[str, ...]) -> None:
    assert replace(CALM, **fields).evidence == reasons


# --- what is counted --------------------------------------------------------------------------------------------------


def test_shares_lean_to_that_of_the_service_and_that_to_the_one_of_all_services() -> None:
    assert PageHistory().facts(new(), []).service_share == 0.5
    other = [episode(f"o{number}", NOW - DAY, service="desk", needed=True) for number in range(2)]
    own = [episode("a", NOW - DAY, needed=True), episode("b", NOW - DAY, alert="queue")]
    facts = PageHistory([*other, *own]).facts(new(), [])
    everywhere = (3 + 2 * 0.5) / (4 + 2)
    service = (1 + 2 * everywhere) / (2 + 2)
    alert = (1 + 2 * service) / (1 + 2)
    assert facts.service_share == pytest.approx(service)
    assert facts.alert_share == pytest.approx(alert)
    assert facts.recent_share == pytest.approx((1 + 2 * alert) / (1 + 2))


def test_the_recent_share_counts_the_last_five_outcomes_alone() -> None:
    history = PageHistory(many([True] * 20 + [False] * 5))
    facts = history.facts(new(began_at=NOW + 30 * DAY), [])
    assert (facts.needed, facts.alone) == (20, 5)
    assert facts.recent_share == pytest.approx(2 * facts.alert_share / (5 + 2))


def test_outcomes_of_another_alert_or_service_are_not_its_own() -> None:
    history = PageHistory([episode("a", alert="queue"), episode("b", service="desk")])
    facts = history.facts(new(began_at=NOW + DAY), [])
    assert (facts.needed, facts.alone, facts.minutes) == (0, 0, None)


def test_an_unknown_outcome_teaches_nothing_but_that_it_fired() -> None:
    facts = PageHistory([episode("a", NOW - HOUR / 2, needed=None)]).facts(new(), [])
    assert (facts.needed, facts.alone, facts.minutes, facts.lately, facts.last_hour) == (0, 0, None, 1, 1)


def test_the_usual_duration_is_the_median_of_the_last_twenty_that_ended_by_themselves() -> None:
    lasting = [60] * 30 + [5] * 11 + [7] * 9
    ended = [
        episode(f"e{number}", NOW + number * DAY, ended_at=NOW + number * DAY + minutes * MINUTE)
        for number, minutes in enumerate(lasting)
    ]
    by_person = episode("p", NOW + 60 * DAY, ended_at=NOW + 61 * DAY, needed=True)
    history = PageHistory([*ended, *[replace(by_person, id=f"p{number}") for number in range(20)]])
    assert history.facts(new(began_at=NOW + 90 * DAY), []).minutes == 5.0


@every_case(
    ("before", "lately", "last_hour"),
    [(timedelta(0), 1, 1), (HOUR, 1, 1), (HOUR + MINUTE, 1, 0), (DAY, 1, 0), (DAY + MINUTE, 0, 0), (-MINUTE, 0, 0)],
)
def test_a_firing_counts_for_an_hour_and_for_a_day(before: timedelta, lately: int, last_hour: int) -> None:
    earlier = episode("a", NOW - before)
    for facts in (PageHistory([earlier]).facts(new(), []), PageHistory().facts(new(), [earlier])):
        assert (facts.lately, facts.last_hour) == (lately, last_hour)


@pytest.mark.parametrize(
    ("before", "just_began"), [(timedelta(0), 1), (10 * MINUTE, 1), (11 * MINUTE, 0), (-MINUTE, 0)]
)
def test_an_incident_anywhere_counts_as_just_begun_for_ten_minutes(before: timedelta, just_began: int) -> None:
    elsewhere = episode("a", NOW - before, service="desk")
    for facts in (PageHistory([elsewhere]).facts(new(), []), PageHistory().facts(new(), [elsewhere])):
        assert facts.just_began == just_began
        assert (facts.lately, facts.last_hour, facts.others_open) == (0, 0, 0)


def test_open_incidents_of_the_service_are_counted_without_itself() -> None:
    opened = new(deploying=True, has_parent=True, excess=3.0, severity=Severity.INFO)
    others = [opened, replace(opened, id="a"), replace(opened, id="b", alert="queue"), replace(opened, service="desk")]
    facts = PageHistory().facts(opened, others)
    assert (facts.others_open, facts.just_began, facts.lately) == (2, 2, 1)
    assert (facts.deploying, facts.has_parent, facts.excess, facts.severity) == (True, True, 3.0, Severity.INFO)


def test_an_incident_that_ends_as_another_begins_is_known_to_it_and_not_open() -> None:
    first = episode("a")
    second = episode("b", NOW + 10 * MINUTE)
    third = episode("c", NOW + 15 * MINUTE)
    rows = facts_in_order([third, second, first])
    assert [each.id for each, _ in rows] == ["a", "b", "c"]
    assert [(facts.alone, facts.others_open) for _, facts in rows] == [(0, 0), (1, 0), (1, 1)]


def test_incidents_that_begin_at_once_are_taken_in_the_order_of_their_names() -> None:
    rows = facts_in_order([episode("b"), episode("a"), replace(episode("c"), ended_at=None)])
    assert [(each.id, facts.others_open) for each, facts in rows] == [("a", 0), ("b", 1), ("c", 2)]


# --- the model --------------------------------------------------------------------------------------------------------


def test_a_probability_is_the_logistic_of_what_the_features_weigh() -> None:
    index = 12  # of a feature that is 0 or 1
    weights, mean, scale = np.zeros(15), np.zeros(15), np.ones(15)
    weights[index], mean[index], scale[index] = 3.0, 0.25, 0.5
    model = replace(FLAT, weights=weights, mean=mean, scale=scale, bias=-1.0)
    assert model.probability(replace(CALM, has_parent=True)) == pytest.approx(1 / (1 + np.exp(-3.5)))
    assert model.probability(CALM) == pytest.approx(1 / (1 + np.exp(2.5)))


def test_past_judgements_become_labels_with_their_outcomes() -> None:
    model = replace(FLAT, judged=np.array([0.1, 0.9]), needed=np.array([0.0, 1.0]))
    labels = model.labels
    assert [(label.evaluation, label.correct) for label in labels] == [
        (Evaluation(1.0, 0.1), False),
        (Evaluation(1.0, 0.9), True),
    ]


@pytest.mark.parametrize("severity", Severity)
def test_only_a_critical_incident_never_waits(severity: Severity) -> None:
    known = replace(CALM, alone=30, severity=severity)
    assert FLAT.may_wait(0.0, 0.0, known, 0.2) is (severity is not Severity.CRITICAL)


@pytest.mark.parametrize(("needed", "alone", "waits"), [(0, 2, False), (0, 3, True), (3, 0, True), (1, 2, True)])
def test_an_alert_waits_once_three_of_its_outcomes_are_known(needed: int, alone: int, waits: bool) -> None:
    assert FLAT.may_wait(0.0, 0.0, replace(CALM, needed=needed, alone=alone), 0.2) is waits


@pytest.mark.parametrize(
    ("count", "needed", "limit"),
    # The upper end of Wilson's interval of 95 %, as tables have it.
    [(40, 0, 0.0876), (40, 4, 0.2305), (100, 5, 0.1118), (100, 50, 0.5962)],
)
def test_an_incident_waits_up_to_the_upper_end_of_what_happened_to_similar_ones(
    count: int, needed: int, limit: float
) -> None:
    outcomes = np.zeros(count)
    outcomes[:needed] = 1
    model, known = replace(FLAT, judged=np.full(count, 0.5), needed=outcomes), replace(CALM, alone=9)
    assert model.like(0.5) == (count, needed)
    assert model.may_wait(0.5, 0.0, known, limit + 0.0001)
    assert not model.may_wait(0.5, 0.0, known, limit - 0.0001)


@every_case(
    ("needed", "alone", "enough"), [(10, 50, True), (50, 10, True), (9, 51, False), (51, 9, False), (10, 49, False)]
)
def test_sixty_outcomes_with_ten_of_either_kind_are_enough(needed: int, alone: int, enough: bool) -> None:
    known = [episode(f"n{number}", needed=number < needed) for number in range(needed + alone)]
    assert has_enough([*known, *(replace(each, id=f"u{each.id}", needed=None) for each in known)]) is enough


def test_each_block_of_time_is_judged_by_what_had_ended_before_it() -> None:
    alternating = [number % 2 == 0 for number in range(100)]
    rows = facts_in_order(many(alternating))
    judged = judged_out_of_fold(rows)
    assert list(judged) == [f"e{number:03}" for number in range(20, 100)]
    assert all(needed is (int(name[1:]) % 2 == 0) for name, (_, needed) in judged.items())
    assert all((chance > 0.5) is needed for chance, needed in judged.values()), "the excess gives it away"
    # The first block is still open when the second begins, so only the third has anything to learn from.
    late = [
        replace(each, ended_at=rows[30][0].began_at) if number < 20 else each for number, (each, _) in enumerate(rows)
    ]
    assert next(iter(judged_out_of_fold(facts_in_order(late)))) == "e040"
    # What ends as the block begins has ended.
    ready = [
        replace(each, ended_at=rows[20][0].began_at) if number < 20 else each for number, (each, _) in enumerate(rows)
    ]
    assert next(iter(judged_out_of_fold(facts_in_order(ready)))) == "e020"


@pytest.mark.parametrize(
    ("first", "judged_from"),
    [
        ([True] * 5 + [False] * 15, "e020"),
        ([True] * 4 + [False] * 16, "e040"),
        ([False] * 5 + [True] * 15, "e020"),
        ([False] * 4 + [True] * 16, "e040"),
    ],
)
def test_a_block_is_judged_once_twenty_outcomes_with_five_of_either_kind_are_known(
    first: list[bool], judged_from: str
) -> None:
    outcomes = [*first, *([True, False] * 40)]
    assert next(iter(judged_out_of_fold(facts_in_order(many(outcomes))))) == judged_from
    fewer = judged_out_of_fold(facts_in_order(many(outcomes[:95])))  # of which a block has nineteen
    assert next(iter(fewer)) == "e038"


def test_a_model_is_fitted_only_if_its_judgements_have_been_of_either_kind() -> None:
    mixed = [number % 2 == 0 for number in range(20)]
    assert fit_paging(many(mixed + [False] * 80)) is None, "none of those that were judged needed a person"
    assert fit_paging(many(mixed + [True] * 4 + [False] * 76)) is None
    assert fit_paging(many(mixed + [True] * 76 + [False] * 4)) is None
    fitted = fit_paging(many(mixed + [True] * 5 + [False] * 75))
    assert fitted is not None
    assert (len(fitted.judged), fitted.needed.sum()) == (80, 5)
    assert sorted(fitted.judged) == fitted.judged.tolist()


def test_a_fit_ignores_what_never_changes_and_weighs_what_tells_the_outcome() -> None:
    rows = facts_in_order(many([number % 2 == 0 for number in range(60)]))
    model = fitted_to(rows)
    assert np.isfinite(model.weights).all()
    assert model.scale[0] == 1.0, "no incident of these is critical"
    assert model.scale[13] == pytest.approx(log(2) / 2), "each second one is at twice its threshold"
    assert model.mean[13] == pytest.approx(log(2) / 2)
    assert model.weights[13] == max(model.weights) > 1
    assert (len(model.judged), len(model.needed)) == (0, 0)


def test_the_prior_is_read_once_and_its_calibration_is_that_of_its_file() -> None:
    assert prior() is prior()
    read = json.loads(PRIOR_FILE.read_text("utf-8"))
    assert (prior().bias, prior().weights.tolist()) == (read["bias"], read["weights"])
    assert prior_probability(0.0) == read["probabilities"][0]
    assert prior_probability(1.0) == read["probabilities"][-1]
