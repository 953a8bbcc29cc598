from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.confidence.calibrator import DECIDABLE, MIN_OUTCOMES, PROBABLE, Label, badge_for, fit, raw_score
from core.model.badge import Calibrator, Evaluation, Strength
from tests.cases import every_case
from tests.fakes.calibrators import FITTED_AT, calibrator

share = st.floats(0, 1)
evaluations = st.builds(Evaluation, share, share)
labels = st.builds(Label, evaluations, st.booleans())
label_lists = st.lists(labels, min_size=MIN_OUTCOMES, max_size=80)

few = settings(max_examples=settings().max_examples // 5)  # a fit takes a while


def fitted(labelled: list[Label]) -> Calibrator:
    found = fit(labelled, "test", FITTED_AT)
    assert found is not None
    return found


def alike(score: float, right: int, wrong: int) -> list[Label]:
    return [Label(Evaluation(score, score), True)] * right + [Label(Evaluation(score, score), False)] * wrong


@few
@given(st.lists(labels, max_size=MIN_OUTCOMES - 1))
def test_too_few_outcomes_make_no_calibrator(labelled: list[Label]) -> None:
    assert fit(labelled, "test", FITTED_AT) is None


@few
@given(label_lists, share, st.lists(share, min_size=2))
def test_more_support_never_makes_a_lower_probability(labelled: list[Label], coe: float, supports: list[float]) -> None:
    found = fitted(labelled)
    ordered = [found.probability(Evaluation(coe, rce)) for rce in sorted(supports)]
    assert ordered == pytest.approx(sorted(ordered))


@few
@given(label_lists, evaluations)
def test_every_evaluation_has_a_probability(labelled: list[Label], asked: Evaluation) -> None:
    assert -1e-9 <= fitted(labelled).probability(asked) <= 1 + 1e-9


@few
@given(label_lists, st.integers())
def test_the_order_of_the_labels_does_not_matter(labelled: list[Label], seed: int) -> None:
    shuffled = list(labelled)
    Random(seed).shuffle(shuffled)
    first, second = fitted(labelled), fitted(shuffled)
    for label in labelled:
        assert first.probability(label.evaluation) == pytest.approx(second.probability(label.evaluation))


@pytest.mark.parametrize("right", [10, 50, 90])
def test_outcomes_that_do_not_depend_on_the_evidence_give_the_base_rate_everywhere(right: int) -> None:
    labelled = [each for score in (0.1, 0.5, 0.9) for each in alike(score, right, 100 - right)]
    found = fitted(labelled)
    for score in (0.0, 0.1, 0.5, 0.9, 1.0):
        assert found.probability(Evaluation(score, score)) == pytest.approx(right / 100, abs=0.05)


def test_evidence_that_tells_right_from_wrong_is_believed_and_few_outcomes_are_not_taken_for_certainty() -> None:
    found = fitted([*alike(0.9, right=20, wrong=0), *alike(0.1, right=0, wrong=20)])
    weak, strong = found.probability(Evaluation(0.1, 0.1)), found.probability(Evaluation(0.9, 0.9))
    assert 0 < weak < 0.25
    assert 0.75 < strong < 1


@pytest.mark.parametrize("labels", [200, 2_000])
def test_what_the_two_measures_are_worth_is_learned_from_the_labels(labels: int) -> None:
    """Here support tells only as far as the references can decide; else one case in three is right."""
    random = Random(labels)
    labelled: list[Label] = []
    for _ in range(labels):
        evaluation = Evaluation(random.random(), random.random())
        truth = 0.33 + evaluation.coe * (evaluation.rce - 0.33)
        labelled.append(Label(evaluation, random.random() < truth))
    found = fitted(labelled)
    undecided = [found.probability(Evaluation(0.05, rce)) for rce in (0.1, 0.9)]
    decided = [found.probability(Evaluation(0.95, rce)) for rce in (0.1, 0.9)]
    assert undecided == pytest.approx([0.33, 0.33], abs=0.16)
    assert decided == pytest.approx([0.13, 0.87], abs=0.16)


def test_a_calibrator_says_what_it_rests_on() -> None:
    labelled = alike(0.5, 20, 20)
    found = fit(labelled, "owner:evidence:1", FITTED_AT)
    assert found is not None
    assert (found.version, found.outcomes, found.fitted_at) == ("owner:evidence:1", 40, FITTED_AT)


def test_either_measure_alone_can_pull_the_score_to_nothing() -> None:
    assert raw_score(Evaluation(1.0, 0.0)) == raw_score(Evaluation(0.0, 1.0)) == 0.0
    assert raw_score(Evaluation(1.0, 1.0)) == 1.0


@every_case(
    ("score", "strength"),
    [
        (0.0, Strength.WEAK),
        (0.34, Strength.WEAK),
        (0.36, Strength.MODERATE),
        (0.59, Strength.MODERATE),
        (0.61, Strength.STRONG),
    ],
)
def test_without_a_calibrator_the_badge_names_the_strength(score: float, strength: Strength) -> None:
    badge = badge_for(Evaluation(score, score), None, outcomes=12)
    assert (badge.strength, badge.probability, badge.outcomes) == (strength, None, 12)


def test_of_a_fitted_rce_nine_in_ten_is_strong_where_it_can_be_decided_and_half_is_moderate() -> None:
    strengths = {
        (1.0, 0.9): Strength.STRONG,
        (DECIDABLE, 0.9): Strength.STRONG,
        (DECIDABLE - 0.01, 0.9): Strength.MODERATE,
        (1.0, 0.89): Strength.MODERATE,
        (0.1, 0.5): Strength.MODERATE,
        (1.0, 0.49): Strength.WEAK,
    }
    assert {measures: PROBABLE.strength(Evaluation(*measures)) for measures in strengths} == strengths


@given(evaluations, st.integers(0, MIN_OUTCOMES))
def test_with_too_few_labels_there_is_no_percentage_anywhere(evaluation: Evaluation, outcomes: int) -> None:
    badge = badge_for(evaluation, None, outcomes)
    assert badge.probability is None
    assert "%" not in badge.text + badge.explanation


def test_with_a_calibrator_the_badge_shows_its_probability_and_what_it_rests_on() -> None:
    badge = badge_for(Evaluation(0.8, 0.8), calibrator(0.2, 0.9), outcomes=3)
    assert (badge.probability, badge.outcomes, badge.fitted_at) == (0.9, 40, FITTED_AT)


def test_a_group_that_is_right_more_often_than_the_others_has_higher_badges() -> None:
    good = [Label(Evaluation(0.5, 0.5), number % 10 != 0, "search") for number in range(100)]
    poor = [Label(Evaluation(0.5, 0.5), number % 10 == 0, "billing") for number in range(100)]
    found = fitted([*good, *poor])
    asked = Evaluation(0.5, 0.5)
    assert found.probability(asked, "search") == pytest.approx(0.9, abs=0.05)
    assert found.probability(asked, "billing") == pytest.approx(0.1, abs=0.05)
    assert found.probability(asked, "unknown") == found.probability(asked) == pytest.approx(0.5, abs=0.05)


def test_a_group_of_few_labels_stays_near_what_holds_for_all() -> None:
    many = [Label(Evaluation(0.5, 0.5), number % 2 == 0, f"team {number % 4 // 2}") for number in range(200)]
    few_labels = [Label(Evaluation(0.5, 0.5), True, "new team")] * 2
    assert 0.5 <= fitted([*many, *few_labels]).probability(Evaluation(0.5, 0.5), "new team") < 0.75
