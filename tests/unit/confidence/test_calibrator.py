from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.confidence.badge import Strength
from core.confidence.calibrator import MIN_OUTCOMES, Calibrator, badge_for, fit, raw_score
from core.confidence.prediction import Evaluation

FITTED_AT = datetime(2026, 3, 1, 3, tzinfo=UTC)

share = st.floats(0, 1)
evaluations = st.builds(Evaluation, share, share)
labels = st.lists(st.tuples(evaluations, st.booleans()), min_size=MIN_OUTCOMES, max_size=120)


def fitted(labelled: list[tuple[Evaluation, bool]]) -> Calibrator:
    calibrator = fit(labelled, "test", FITTED_AT)
    assert calibrator is not None
    return calibrator


def alike(score: float, right: int, wrong: int) -> list[tuple[Evaluation, bool]]:
    return [(Evaluation(score, score), True)] * right + [(Evaluation(score, score), False)] * wrong


def base_rate(labelled: list[tuple[Evaluation, bool]]) -> float:
    return sum(correct for _, correct in labelled) / len(labelled)


@given(st.lists(st.tuples(evaluations, st.booleans()), max_size=MIN_OUTCOMES - 1))
def test_too_few_outcomes_make_no_calibrator(labelled: list[tuple[Evaluation, bool]]) -> None:
    assert fit(labelled, "test", FITTED_AT) is None


@given(labels, st.lists(evaluations, min_size=2))
def test_more_evidence_never_makes_a_lower_probability(
    labelled: list[tuple[Evaluation, bool]], asked: list[Evaluation]
) -> None:
    calibrator = fitted(labelled)
    ordered = [calibrator.probability(evaluation) for evaluation in sorted(asked, key=raw_score)]
    assert all(lower <= higher for lower, higher in pairwise(ordered))


@given(labels, evaluations)
def test_every_evaluation_has_a_probability(labelled: list[tuple[Evaluation, bool]], asked: Evaluation) -> None:
    assert 0.0 <= fitted(labelled).probability(asked) <= 1.0


@given(labels)
def test_no_step_is_sure_unless_every_outcome_was_the_same(labelled: list[tuple[Evaluation, bool]]) -> None:
    """Shrunk to the base rate, a step lies strictly between never and always."""
    if 0 < base_rate(labelled) < 1:
        assert all(0 < probability < 1 for probability in fitted(labelled).probabilities)


@given(labels)
def test_the_steps_are_no_further_apart_than_the_outcomes(labelled: list[tuple[Evaluation, bool]]) -> None:
    probabilities = fitted(labelled).probabilities
    assert probabilities[0] <= base_rate(labelled) + 1e-9
    assert probabilities[-1] >= base_rate(labelled) - 1e-9


@given(labels, st.randoms(use_true_random=False))
def test_the_order_of_the_labels_does_not_matter(labelled: list[tuple[Evaluation, bool]], random: object) -> None:
    shuffled = list(labelled)
    random.shuffle(shuffled)  # pyright: ignore[reportAttributeAccessIssue]
    assert fitted(shuffled) == fitted(labelled)


def test_outcomes_that_do_not_depend_on_the_evidence_give_the_base_rate_everywhere() -> None:
    calibrator = fitted([*alike(0.9, right=10, wrong=10), *alike(0.1, right=10, wrong=10)])
    assert calibrator.upper == (1.0,)
    assert calibrator.probabilities == pytest.approx((0.5,))


def test_a_step_is_shrunk_by_the_weight_of_the_prior() -> None:
    """20 of 20 and 0 of 20 at a base rate of one half; ten prior outcomes are shared by both steps."""
    calibrator = fitted([*alike(0.9, right=20, wrong=0), *alike(0.1, right=0, wrong=20)])
    assert calibrator.upper == pytest.approx((0.1, 1.0))
    assert calibrator.probabilities == pytest.approx((2.5 / 25, 22.5 / 25))


def test_neighbours_in_the_wrong_order_share_one_step() -> None:
    labelled = [*alike(0.1, 0, 10), *alike(0.5, 8, 2), *alike(0.6, 4, 6), *alike(0.9, 10, 0)]
    calibrator = fitted(labelled)
    assert calibrator.upper == pytest.approx((0.1, 0.6, 1.0))


def test_either_measure_alone_can_pull_the_score_to_nothing() -> None:
    assert raw_score(Evaluation(1.0, 0.0)) == raw_score(Evaluation(0.0, 1.0)) == 0.0
    assert raw_score(Evaluation(1.0, 1.0)) == 1.0


@pytest.mark.parametrize(
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


def test_with_a_calibrator_the_badge_shows_its_probability_and_what_it_rests_on() -> None:
    calibrator = Calibrator("v1", (0.5, 1.0), (0.2, 0.9), 40, FITTED_AT)
    badge = badge_for(Evaluation(0.8, 0.8), calibrator, outcomes=3)
    assert (badge.probability, badge.outcomes, badge.fitted_at) == (0.9, 40, FITTED_AT)
