"""Simulated scores with known true probabilities, to reproduce the ordering of LM-PACE's table 2.

The methods are the table's four columns: optimised or equally wide thresholds, on COE and RCE or on RCE alone. They are
fitted on one sample and measured on another; figures are means over the seeds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from core.confidence.measures import brier, ece
from core.confidence.tally import FloatArray
from core.confidence.thresholds import Thresholds, fit_thresholds, uniform
from core.confidence.transformation import CANDIDATES, RCE_ALONE

SEEDS = range(5)
LABELS = 2_000  # the size of the paper's validation set
TESTED = 3_000

OPTIMISED = "COE and RCE, optimised"
OPTIMISED_ALONE = "RCE only, optimised"
UNIFORM = "COE and RCE, uniform"
UNIFORM_ALONE = "RCE only, uniform"


class Pair(NamedTuple):
    """Simulated scores, their true probabilities, and sampled outcomes."""

    coe: FloatArray
    rce: FloatArray
    truth: FloatArray
    correct: FloatArray


def simulated(count: int, generator: np.random.Generator, references: float = 1.0) -> Pair:
    """Return scores with an overconfident RCE, uninformative where COE is low (30 % right).

    Few `references` mean low COE.
    """
    coe, rce = generator.beta(references, 1, count), generator.beta(4, 2, count)
    truth = 0.3 + coe * (rce**2 - 0.3)
    return Pair(coe, rce, truth, (generator.random(count) < truth).astype(float))


def measured(references: float = 1.0) -> dict[str, dict[str, float]]:
    """Return method → `ece`, `brier` and `truth`, the mean distance from the true probability."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    for seed in SEEDS:
        generator = np.random.default_rng(seed)
        known, tested = simulated(LABELS, generator), simulated(TESTED, generator, references)
        for name, method in _methods(known).items():
            said = method.probabilities(tested.coe, tested.rce)
            off = float(np.abs(said - tested.truth).mean())
            found.setdefault(name, []).append((ece(said, tested.correct), brier(said, tested.correct), off))
    return {
        name: dict(zip(("ece", "brier", "truth"), np.mean(figures, axis=0).round(4).tolist(), strict=True))
        for name, figures in found.items()
    }


def print_simulated(figures: Mapping[str, Mapping[str, Any]], out: Console) -> None:
    table = Table("thresholds", "Brier", "ECE", "off the truth", title="Simulated pair of scores")
    for name, found in figures.items():
        table.add_row(name, *(f"{found[key]:.4f}" for key in ("brier", "ece", "truth")))
    out.print(table)


def _methods(known: Pair) -> dict[str, Thresholds]:
    return {
        OPTIMISED: fit_thresholds(known.coe, known.rce, known.correct),
        OPTIMISED_ALONE: fit_thresholds(known.coe, known.rce, known.correct, transformations=[RCE_ALONE]),
        UNIFORM: _best_uniform(known),
        UNIFORM_ALONE: uniform(RCE_ALONE),
    }


def _best_uniform(known: Pair) -> Thresholds:
    """Return the best transformation for equally wide bins, so that only the thresholds differ in the comparison."""
    return min(
        (uniform(transformation) for transformation in CANDIDATES),
        key=lambda each: ece(each.probabilities(known.coe, known.rce), known.correct),
    )
