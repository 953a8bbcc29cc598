"""`python -m tests.benchmarks lm-pace`: the ordering of LM-PACE's table 2, where the truth is known.

Its four columns (`tests/benchmarks/confidence.py`) are fitted on one sample of a simulated pair of scores and measured on
another, whose true probabilities are known; a figure is the mean over the seeds.

With `--recorded`, they are measured on answers of real models: a file with the columns `llm`, `chosen_token_confidence`
(the probability that the model gave to its answer, here COE), `stated_confidence` (what it said about it, here RCE) and
`correct`. Both stand for the scores of LM-PACE without references or analyses. Models without token probabilities are
left out.
"""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from core.confidence.ensemble import FloatArray
from core.confidence.measures import brier, ece
from tests.benchmarks import confidence
from tests.benchmarks.confidence import METHODS, Scores, probabilities

SEEDS = range(5)
LABELS = 2_000  # as many as the paper's validation set
TESTED = 3_000


class Simulated(NamedTuple):
    """Simulated scores with outcomes, and the probabilities that these were drawn with."""

    scores: Scores
    truth: FloatArray


def simulated(count: int, generator: np.random.Generator, references: float = 1.0) -> Simulated:
    """RCE overstates; where COE is low it says nothing and three cases in ten are right. Few `references`: low COE."""
    coe, rce = generator.beta(references, 1, count), generator.beta(4, 2, count)
    truth = 0.3 + coe * (rce**2 - 0.3)
    return Simulated(Scores(coe, rce, (generator.random(count) < truth).astype(float)), truth)


def measured(references: float = 1.0) -> dict[str, dict[str, float]]:
    """Method → `ece`, `brier`, and `truth`: the mean distance of what it says from the true probability."""
    rows: dict[str, list[tuple[float, float, float]]] = {}
    for seed in SEEDS:
        generator = np.random.default_rng(seed)
        fitted_on, tested = simulated(LABELS, generator).scores, simulated(TESTED, generator, references)
        for name, method in METHODS.items():
            claimed = probabilities(method(fitted_on), tested.scores)
            off = float(np.abs(claimed - tested.truth).mean())
            correct = tested.scores.correct
            rows.setdefault(name, []).append((ece(claimed, correct), brier(claimed, correct), off))
    return {
        name: dict(zip(("ece", "brier", "truth"), np.mean(figures, axis=0).round(4).tolist(), strict=True))
        for name, figures in rows.items()
    }


def recorded(file: Path) -> dict[str, dict[str, Any]]:
    """Return the figures of `confidence.measured` for each model."""
    by_model: dict[str, list[tuple[float, float, bool]]] = defaultdict(list)
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if (sure := row["chosen_token_confidence"]) != "NA":
                right = row["correct"] == "TRUE"
                by_model[row["llm"]].append((min(float(sure), 1.0), float(row["stated_confidence"]), right))
    scores = {model: Scores(*np.array(rows, float).T) for model, rows in sorted(by_model.items())}
    return {
        model: {
            "engine": model,
            "cases": len(judged.correct),
            "right": float(judged.correct.mean()),
            "results": confidence.measured(judged),
        }
        for model, judged in scores.items()
    }


def print_table(figures: Mapping[str, Mapping[str, Any]], out: Console) -> None:
    table = Table("thresholds", "Brier", "ECE", "off the truth", title="Simulated pair of scores")
    for name, row in figures.items():
        table.add_row(name, *(f"{row[key]:.4f}" for key in ("brier", "ece", "truth")))
    out.print(table)
