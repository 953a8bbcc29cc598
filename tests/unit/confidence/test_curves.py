from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.confidence.ensemble import FLAT, Curve, Prior, Tally, beta_features, count, fit_curve, log_odds

LEVELS = np.array([0.1, 0.4, 0.6, 0.9])
SCORES = np.linspace(0, 1, 51)

number_of_labels = st.lists(st.integers(0, 40), min_size=4, max_size=4)


def beta(tally: Tally, mean: float = 0.0, deviation: float = FLAT) -> Curve:
    return fit_curve(tally, beta_features, Prior(np.full(2, mean), np.full(2, deviation)))


def tally_of(right: list[int], wrong: list[int]) -> Tally:
    return Tally(LEVELS, np.array(right, float), np.array(wrong, float))


@given(number_of_labels, number_of_labels.filter(any))
def test_a_curve_never_falls_and_is_never_sure(right: list[int], wrong: list[int]) -> None:
    curve = beta(tally_of(right, wrong), mean=0.5, deviation=0.5).at(SCORES)
    assert all(lower <= higher + 1e-12 for lower, higher in pairwise(curve))
    assert 0 < curve.min() <= curve.max() < 1


@example([16, 0, 0, 8], [14, 0, 1, 0])
@given(number_of_labels, number_of_labels.filter(any))
def test_the_mean_of_a_curve_without_a_prior_is_the_base_rate_and_half_a_label_each_way(
    right: list[int], wrong: list[int]
) -> None:
    tally = tally_of(right, wrong)
    share = tally.counts / tally.counts.sum()
    expected = (sum(right) + 0.5) / (sum(right) + sum(wrong) + 1)
    assert share @ beta(tally).at(LEVELS) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("intercept", "slopes"), [(0.0, [1.0, 1.0]), (0.7, [0.4, 1.5]), (-1.0, [2.0, 0.0]), (2.0, [0.0, 0.3])]
)
def test_the_curve_behind_many_labels_is_found_again(intercept: float, slopes: list[float]) -> None:
    generator = np.random.default_rng(1)
    scores = generator.uniform(0.02, 0.98, 100_000)
    truth = Curve(beta_features, intercept, np.array(slopes))
    correct = (generator.random(len(scores)) < truth.at(scores)).astype(float)
    inside = np.linspace(0.05, 0.95, 19)
    assert beta(count(scores, correct)).at(inside) == pytest.approx(truth.at(inside), abs=0.015)


def test_platt_scaling_of_true_probabilities_leaves_them_alone() -> None:
    generator = np.random.default_rng(2)
    scores = generator.uniform(0.02, 0.98, 50_000)
    correct = (generator.random(len(scores)) < scores).astype(float)
    fitted = fit_curve(count(scores, correct), log_odds, Prior(np.zeros(1), np.full(1, FLAT)))
    assert fitted.at(SCORES[1:-1]) == pytest.approx(SCORES[1:-1], abs=0.02)


def test_few_labels_hardly_move_a_curve_from_its_prior() -> None:
    prior = beta(tally_of([1, 1, 1, 1], [1, 1, 1, 1]), mean=0.5, deviation=0.01)
    moved = beta(tally_of([1, 1, 1, 0], [0, 0, 0, 1]), mean=0.5, deviation=0.01)
    assert moved.slopes == pytest.approx(prior.slopes, abs=0.01)


def test_evidence_that_misleads_makes_a_flat_curve() -> None:
    curve = beta(tally_of([30, 20, 10, 0], [0, 10, 20, 30]))
    assert curve.at(SCORES) == pytest.approx(np.full(51, 0.5))


def test_one_score_alone_gives_the_base_rate_there() -> None:
    tally = Tally(np.array([0.995]), right=np.array([30.0]), wrong=np.array([10.0]))
    assert beta(tally, mean=0.5, deviation=0.5).at(tally.levels) == pytest.approx([30.5 / 41])
