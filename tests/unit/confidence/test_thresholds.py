from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

from core.confidence.calibrator import CANDIDATES, SHARPNESS, Weighting, by_count, fit_thresholds, middles
from core.confidence.ensemble import FloatArray
from core.model.badge import RCE_ALONE, Evaluation, Steps


def by_confidence(confidence: float, counts: FloatArray) -> FloatArray:
    """Weight by count and confidence, so that errors of confident predictions cost more."""
    return counts * confidence


@pytest.mark.parametrize("weighting", [by_count, by_confidence])
def test_no_other_cuts_have_a_lower_objective(weighting: Weighting) -> None:
    """Against every way to cut six levels into four categories."""
    generator = np.random.default_rng(3)
    rce = generator.choice([0.1, 0.2, 0.4, 0.6, 0.7, 0.9], 60)
    correct = (generator.random(60) < rce**2).astype(float)
    fitted = fit_thresholds(np.ones(60), rce, correct, [RCE_ALONE], weighting=weighting, categories=4)
    between = [0.0, 0.15, 0.3, 0.5, 0.65, 0.8, 1.0]
    all_cuts = [Steps((*inner, 1.0), tuple(middles(4).tolist())) for inner in combinations_with_replacement(between, 3)]
    objectives = [_objective(each, rce, correct, weighting) for each in all_cuts]
    assert _objective(fitted, rce, correct, weighting) == pytest.approx(min(objectives))


def test_a_category_without_scores_takes_none_of_another_one() -> None:
    """A score of 0 may well be right: an undecidable claim has the score of the anchor."""
    rce = np.array([0.0] * 20 + [1.0] * 20)
    found = fit_thresholds(np.ones(40), rce, np.ones(40), [RCE_ALONE])
    assert [found.probability(Evaluation(1.0, score)) for score in (0.0, 1.0)] == [0.95, 0.95]


def test_the_categories_follow_the_measure_that_tells() -> None:
    generator = np.random.default_rng(5)
    coe, rce = generator.random(1_000), generator.random(1_000)
    correct = (generator.random(1_000) < 0.5 + coe * (rce - 0.5)).astype(float)
    found = fit_thresholds(coe, rce, correct, CANDIDATES)
    assert found.transformation.weight > 0
    assert fit_thresholds(coe, rce, correct, [found.transformation, RCE_ALONE]) == found
    assert fit_thresholds(coe, rce, correct, [RCE_ALONE, found.transformation]) == found
    assert found.probability(Evaluation(1.0, 0.95)) > 0.8
    assert 0.4 < found.probability(Evaluation(0.05, 0.95)) < 0.6


def test_confidence_weighs_the_error_of_the_confident_more() -> None:
    counts = np.array([10.0])
    assert by_count(0.2, counts) == by_count(0.9, counts)
    assert by_confidence(0.2, counts) < by_confidence(0.9, counts)


def _objective(fitted: Steps, rce: FloatArray, correct: FloatArray, weighting: Weighting) -> float:
    said = np.array([fitted.probability(Evaluation(1.0, score)) for score in rce.tolist()])
    total = SHARPNESS * float(((said - correct) ** 2).sum())
    for confidence in fitted.probabilities:
        held = said == confidence
        if held.any():
            off = abs(confidence - correct[held].mean())
            total += float(weighting(confidence, np.array([held.sum()], float))[0]) * off
    return total
