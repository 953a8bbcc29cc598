from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.confidence.ensemble import FloatArray
from core.confidence.measures import (
    auroc,
    bootstrap,
    brier,
    ece,
    ece_floor,
    ece_interval,
    reliability,
    risk_coverage,
)

predictions = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60).map(
    lambda pairs: (np.array([p for p, _ in pairs]), np.array([float(right) for _, right in pairs]))
)
Predictions = tuple[FloatArray, FloatArray]

# Ten predictions worked out by hand: bins (.1, .2], (.8, .9] and (.9, 1].
SAID = np.array([0.2, 0.2, 0.2, 0.2, 0.9, 0.9, 0.9, 0.9, 1.0, 1.0])
RIGHT = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0])


def drawn(count: int, seed: int = 1) -> Predictions:
    """Probabilities that are exactly true."""
    generator = np.random.default_rng(seed)
    probabilities = generator.random(count)
    return probabilities, (generator.random(count) < probabilities).astype(float)


def test_the_bins_of_the_worked_example() -> None:
    found = reliability(SAID, RIGHT)
    assert found.counts.tolist() == [4, 4, 2]
    assert found.confidence == pytest.approx([0.2, 0.9, 1.0])
    assert found.accuracy == pytest.approx([0.25, 0.75, 0.5])


def test_the_calibration_errors_of_the_worked_example() -> None:
    assert ece(SAID, RIGHT) == pytest.approx((4 * 0.05 + 4 * 0.15 + 2 * 0.5) / 10)


def test_a_probability_on_an_edge_belongs_to_the_bin_below() -> None:
    found = reliability(np.arange(11) / 10, np.zeros(11))
    assert found.counts.tolist() == [2, 1, 1, 1, 1, 1, 1, 1, 1, 1]


def test_the_wilson_interval_of_a_bin() -> None:
    low, high = reliability(SAID, RIGHT).interval
    assert (low[0], high[0]) == pytest.approx((0.0456, 0.6994), abs=1e-3)
    assert (low[1], high[1]) == pytest.approx((0.3006, 0.9544), abs=1e-3)


@given(predictions)
def test_a_constant_base_rate_has_no_error_and_tells_nothing(case: Predictions) -> None:
    correct = case[1]
    constant = np.full(len(correct), correct.mean())
    assert ece(constant, correct) == pytest.approx(0)
    assert math.isnan(auroc(constant, correct)) or auroc(constant, correct) == 0.5


@given(predictions)
def test_the_area_is_the_share_of_pairs_in_the_right_order(case: Predictions) -> None:
    probabilities, correct = case
    right, wrong = probabilities[correct == 1], probabilities[correct == 0]
    if len(right) and len(wrong):
        pairs = np.sign(right[:, None] - wrong)
        assert auroc(probabilities, correct) == pytest.approx((1 + pairs.mean()) / 2)
    else:
        assert math.isnan(auroc(probabilities, correct))


def test_risk_falls_as_only_the_confident_ones_are_shown() -> None:
    found = risk_coverage(SAID, RIGHT)
    assert found.coverage == pytest.approx([0.2, 0.6, 1.0])
    assert found.risk == pytest.approx([0.5, 2 / 6, 5 / 10])


@given(predictions)
def test_coverage_grows_to_everything_and_its_risk_is_the_share_of_wrong_ones(case: Predictions) -> None:
    found = risk_coverage(*case)
    assert all(lower < higher for lower, higher in pairwise(found.coverage))
    assert (found.coverage[-1], found.risk[-1]) == pytest.approx((1.0, 1 - case[1].mean()))


def test_the_floor_is_the_error_of_true_probabilities_and_falls_with_their_number() -> None:
    errors = [ece(*drawn(200, seed)) for seed in range(200)]
    floors = [ece_floor(drawn(200, seed)[0]) for seed in range(20)]
    assert np.mean(floors) == pytest.approx(np.mean(errors), rel=0.1)
    assert ece_floor(drawn(20_000)[0]) < 0.2 * ece_floor(drawn(200)[0])


def test_the_bootstrap_interval_covers_the_true_figure_about_as_often_as_it_says() -> None:
    """The Brier score of true uniform probabilities is 1/6."""
    covered = 0
    for seed in range(60):
        low, high = bootstrap(brier, *drawn(150, seed), resamples=200)
        covered += low <= 1 / 6 <= high
    assert covered >= 50


@pytest.mark.parametrize("count", [20, 300])
@pytest.mark.parametrize("boast", [0.0, 0.2])
def test_the_interval_of_the_calibration_error_holds_what_is_true_and_what_was_measured(
    boast: float, count: int
) -> None:
    """Each probability is said to be so much higher than it is: that is the error, whatever the bins."""
    covered = 0
    for seed in range(60):
        generator = np.random.default_rng(seed)
        honest = generator.uniform(0, 0.8, count)
        correct = (generator.random(count) < honest).astype(float)
        low, high = ece_interval(honest + boast, correct, resamples=200)
        assert 0 <= low <= ece(honest + boast, correct) <= high
        covered += low <= boast <= high
    assert covered >= 50


def test_the_same_seed_gives_the_same_interval() -> None:
    assert bootstrap(brier, SAID, RIGHT, resamples=50) == bootstrap(brier, SAID, RIGHT, resamples=50)
    assert ece_interval(SAID, RIGHT, resamples=50) == ece_interval(SAID, RIGHT, resamples=50)
