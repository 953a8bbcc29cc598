from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
import pytest

from core.confidence.measures import brier, ece
from core.confidence.tally import FloatArray
from core.confidence.thresholds import (
    SHARPNESS,
    Thresholds,
    Weighting,
    by_confidence,
    by_count,
    fit_thresholds,
    uniform,
)
from core.confidence.transformation import CANDIDATES, RCE_ALONE

SEEDS = range(5)
LABELS = 2_000  # as many as the paper's validation set
TESTED = 3_000


class Pair(NamedTuple):
    """Simulated scores, the probabilities that they stand for, and outcomes drawn from those."""

    coe: FloatArray
    rce: FloatArray
    truth: FloatArray
    correct: FloatArray


def simulated(count: int, generator: np.random.Generator, references: float = 1.0) -> Pair:
    """RCE overstates; where COE is low it says nothing and three cases in ten are right. Few `references`: low COE."""
    coe, rce = generator.beta(references, 1, count), generator.beta(4, 2, count)
    truth = 0.3 + coe * (rce**2 - 0.3)
    return Pair(coe, rce, truth, (generator.random(count) < truth).astype(float))


@cache
def measured(measure: str, references: float = 1.0) -> dict[str, float]:
    """Mean over the seeds, fitted on one sample and measured on another."""
    found: dict[str, list[float]] = {}
    for seed in SEEDS:
        generator = np.random.default_rng(seed)
        known, tested = simulated(LABELS, generator), simulated(TESTED, generator, references)
        both = fit_thresholds(known.coe, known.rce, known.correct)
        alone = fit_thresholds(known.coe, known.rce, known.correct, transformations=[RCE_ALONE])
        methods = {
            "LM-PACE": both,
            "RCE only": alone,
            "COE and RCE, uniform": _best_uniform(known),
            "RCE only, uniform": uniform(RCE_ALONE),
        }
        for name, method in methods.items():
            probabilities = method.probabilities(tested.coe, tested.rce)
            figure = {
                "ece": ece(probabilities, tested.correct),
                "brier": brier(probabilities, tested.correct),
                "truth": float(np.abs(probabilities - tested.truth).mean()),
            }[measure]
            found.setdefault(name, []).append(figure)
    return {name: float(np.mean(figures)) for name, figures in found.items()}


@pytest.mark.parametrize("measure", ["ece", "brier", "truth"])
def test_optimised_thresholds_are_truer_than_uniform_bins(measure: str) -> None:
    """The paper's table 2, its first two columns against its last two."""
    figures = measured(measure)
    assert figures["LM-PACE"] < figures["COE and RCE, uniform"]
    assert figures["RCE only"] < figures["RCE only, uniform"]


@pytest.mark.parametrize("measure", ["ece", "brier", "truth"])
def test_coe_and_rce_together_are_truer_than_rce_alone(measure: str) -> None:
    """The paper's table 2, its odd columns against its even ones."""
    figures = measured(measure)
    assert figures["LM-PACE"] < figures["RCE only"]
    assert figures["COE and RCE, uniform"] < figures["RCE only, uniform"]


def test_coe_keeps_the_confidence_true_when_references_become_scarce() -> None:
    """What RCE alone is worth depends on how many references there were when it was fitted."""
    figures = measured("ece", references=0.3)
    assert figures["LM-PACE"] < 0.75 * figures["RCE only"]


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


def _best_uniform(known: Pair) -> Thresholds:
    """The transformation that is optimal for bins of equal width, so that the comparison is of the thresholds alone."""
    return min(
        (uniform(transformation) for transformation in CANDIDATES),
        key=lambda each: ece(each.probabilities(known.coe, known.rce), known.correct),
    )


def _objective(fitted: Thresholds, rce: FloatArray, correct: FloatArray, weighting: Weighting) -> float:
    said = fitted.probabilities(np.ones(len(rce)), rce)
    total = SHARPNESS * float(((said - correct) ** 2).sum())
    for confidence in fitted.confidences.tolist():
        held = said == confidence
        if held.any():
            off = abs(confidence - correct[held].mean())
            total += float(weighting(confidence, np.array([held.sum()], float))[0]) * off
    return total
