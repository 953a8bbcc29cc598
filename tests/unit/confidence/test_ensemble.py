from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.confidence.ensemble import FloatArray, Tally, count, fit_ensemble

LEVELS = np.linspace(0, 1, 21)

number_of_labels = st.lists(st.integers(0, 20), min_size=21, max_size=21)


def simulated(labels: int, truth: FloatArray, seed: int = 0) -> Tally:
    """Labels at random levels, right with the probability that `truth` gives to each level."""
    generator = np.random.default_rng(seed)
    level = generator.integers(0, len(LEVELS), labels)
    correct = (generator.random(labels) < truth[level]).astype(float)
    return count(LEVELS[level], correct, LEVELS)


@given(number_of_labels, number_of_labels.filter(lambda wrong: sum(wrong) >= 2))
def test_the_map_ascends_and_is_no_surer_than_its_labels_allow(right: list[int], wrong: list[int]) -> None:
    tally = Tally(LEVELS, np.array(right, float), np.array(wrong, float))
    probabilities = fit_ensemble(tally).probabilities
    assert all(lower <= higher + 1e-12 for lower, higher in pairwise(probabilities))
    surest = 0.5 / (tally.counts.sum() + 1)
    assert surest - 1e-12 <= probabilities.min() <= probabilities.max() <= 1 - surest + 1e-12


@pytest.mark.parametrize("name", ["smooth", "steps", "constant"])
def test_many_labels_bring_out_the_truth_whatever_its_form(name: str) -> None:
    truth = {
        "smooth": 0.1 + 0.8 * LEVELS**2,
        "steps": np.where(LEVELS < 0.3, 0.1, np.where(LEVELS < 0.7, 0.5, 0.9)),
        "constant": np.full(21, 0.7),
    }[name]
    assert fit_ensemble(simulated(40_000, truth)).probabilities == pytest.approx(truth, abs=0.05)


def test_few_labels_are_shrunk_towards_the_base_rate() -> None:
    """Ten of ten right above and none of ten below: certain by count, and far from it by the map."""
    tally = Tally(np.array([0.2, 0.8]), right=np.array([0.0, 3.0]), wrong=np.array([3.0, 0.0]))
    low, high = fit_ensemble(tally).probabilities
    assert 0.1 < low < 0.5 < high < 0.9


def test_evidence_that_says_nothing_leaves_the_base_rate() -> None:
    spread = [np.ptp(fit_ensemble(simulated(500, np.full(21, 0.6), seed)).probabilities) for seed in range(5)]
    assert np.mean(spread) < 0.15


def test_scores_that_predict_held_out_labels_have_more_evidence_than_scores_that_do_not() -> None:
    telling, silent = simulated(200, LEVELS), simulated(200, np.full(21, 0.5))
    assert fit_ensemble(telling).evidence > fit_ensemble(silent).evidence
