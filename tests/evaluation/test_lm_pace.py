from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import pytest

from core.confidence.ensemble import FloatArray
from core.model.calibrator import RCE_ALONE
from tests.benchmarks import lm_pace
from tests.benchmarks.lm_pace import (
    OPTIMISED,
    OPTIMISED_ALONE,
    SHARPNESS,
    UNIFORM,
    UNIFORM_ALONE,
    Thresholds,
    Weighting,
    by_confidence,
    by_count,
    fit_thresholds,
    uniform,
)

measured = cache(lm_pace.measured)


@pytest.mark.parametrize("measure", ["ece", "brier", "truth"])
def test_optimised_thresholds_are_truer_than_uniform_bins(measure: str) -> None:
    """The paper's table 2, its first two columns against its last two."""
    figures = measured()
    assert figures[OPTIMISED][measure] < figures[UNIFORM][measure]
    assert figures[OPTIMISED_ALONE][measure] < figures[UNIFORM_ALONE][measure]


@pytest.mark.parametrize("measure", ["ece", "brier", "truth"])
def test_coe_and_rce_together_are_truer_than_rce_alone(measure: str) -> None:
    """The paper's table 2, its odd columns against its even ones."""
    figures = measured()
    assert figures[OPTIMISED][measure] < figures[OPTIMISED_ALONE][measure]
    assert figures[UNIFORM][measure] < figures[UNIFORM_ALONE][measure]


def test_coe_keeps_the_confidence_true_when_references_become_scarce() -> None:
    """What RCE alone is worth depends on how many references there were when it was fitted."""
    figures = measured(references=0.3)
    assert figures[OPTIMISED]["ece"] < 0.75 * figures[OPTIMISED_ALONE]["ece"]


@pytest.mark.parametrize("weighting", [by_count, by_confidence])
def test_no_other_cuts_have_a_lower_objective(weighting: Weighting) -> None:
    """Against every way to cut six levels into four categories."""
    generator = np.random.default_rng(3)
    rce = generator.choice([0.1, 0.2, 0.4, 0.6, 0.7, 0.9], 60)
    correct = (generator.random(60) < rce**2).astype(float)
    fitted = fit_thresholds(np.ones(60), rce, correct, weighting=weighting, categories=4, transformations=[RCE_ALONE])
    between = [0.0, 0.15, 0.3, 0.5, 0.65, 0.8, 1.0]
    all_cuts = [
        Thresholds(RCE_ALONE, np.array([*inner, 1.0]), fitted.confidences)
        for inner in combinations_with_replacement(between, 3)
    ]
    objectives = [_objective(each, rce, correct, weighting) for each in all_cuts]
    assert _objective(fitted, rce, correct, weighting) == pytest.approx(min(objectives))


def test_confidence_weighs_the_error_of_the_confident_more() -> None:
    counts = np.array([10.0])
    assert by_count(0.2, counts) == by_count(0.9, counts)
    assert by_confidence(0.2, counts) < by_confidence(0.9, counts)


def test_uniform_categories_say_their_own_middle() -> None:
    said = uniform(RCE_ALONE, categories=4).probabilities(np.ones(5), np.array([0.0, 0.25, 0.26, 0.8, 1.0]))
    assert said.tolist() == [0.125, 0.125, 0.375, 0.875, 0.875]


def _objective(fitted: Thresholds, rce: FloatArray, correct: FloatArray, weighting: Weighting) -> float:
    said = fitted.probabilities(np.ones(len(rce)), rce)
    total = SHARPNESS * float(((said - correct) ** 2).sum())
    for confidence in fitted.confidences.tolist():
        held = said == confidence
        if held.any():
            off = abs(confidence - correct[held].mean())
            total += float(weighting(confidence, np.array([held.sum()], float))[0]) * off
    return total
