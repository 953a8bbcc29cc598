"""How true stated confidences are, before and after calibration on few labels.

Each group (`llm/qset`) is split into random halves several times. A method is fitted on the first labels of one half,
up to the budget, and measured on the other half. Figures are means over the splits; `mean` is the mean of those over
the groups. A group whose half is smaller than a budget is left out of it.
"""

from __future__ import annotations

import csv
import gzip
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from rich.console import Console

from bot.evaluation.report import SEED, bootstrap_interval, cell, print_rows
from core.confidence.calibrator import Label, fit
from core.confidence.ensemble import (
    FLAT,
    Features,
    FloatArray,
    Prior,
    ascending,
    beta_features,
    count,
    fit_curve,
    log_odds,
)
from core.confidence.measures import auroc, brier, ece, ece_floor
from core.model.badge import Evaluation
from core.model.errors import MalformedInput

BUDGETS = (20, 50, 100, 200, 500)  # labels; then the whole half
SPLITS = 10
COLUMNS = {"llm", "qset", "stated_confidence", "correct"}
LABELS = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}
FITTED_AT = datetime(2026, 1, 1, tzinfo=UTC)

Map = Callable[[FloatArray], FloatArray]  # stated confidences → probabilities
Group = tuple[FloatArray, FloatArray]  # stated confidences, correct
Figures = dict[str, float | None]


def _raw(_scores: FloatArray, _correct: FloatArray) -> Map:
    return lambda stated: stated


def _base_rate(_scores: FloatArray, correct: FloatArray) -> Map:
    return lambda stated: np.full(len(stated), correct.mean())


def _isotonic(scores: FloatArray, correct: FloatArray) -> Map:
    tally = count(scores, correct)
    rates = ascending(tally.right / tally.counts, tally.counts)
    return lambda stated: np.interp(stated, tally.levels, rates)


def _curve(features: Features, slopes: int) -> Callable[[FloatArray, FloatArray], Map]:
    """Return a method without a prior, except half a label each way, which keeps few labels from giving certainty."""
    flat = Prior(np.zeros(slopes), np.full(slopes, FLAT))
    return lambda scores, correct: fit_curve(count(scores, correct), features, flat).at


def _plumbline(scores: FloatArray, correct: FloatArray) -> Map:
    """Fit the product's calibrator, also below the number of labels at which it shows a percentage."""
    labelled = [Label(Evaluation(1.0, score), label == 1.0) for score, label in zip(scores, correct, strict=True)]
    calibrator = fit(labelled, "eval", FITTED_AT, min_outcomes=BUDGETS[0])
    assert calibrator is not None
    return lambda stated: np.array([calibrator.probability(Evaluation(1.0, score)) for score in stated.tolist()])


METHODS: Mapping[str, Callable[[FloatArray, FloatArray], Map]] = {
    "raw": _raw,
    "base_rate": _base_rate,
    "isotonic": _isotonic,
    "platt": _curve(log_odds, 1),
    "beta": _curve(beta_features, 2),
    "plumbline": _plumbline,
}


def run(path: Path) -> dict[str, Any]:
    """Return the figures. Raises MalformedInput for an invalid file."""
    groups = _groups(path)
    results = {name: _measured(name, *group) for name, group in groups.items()}
    return {
        "seed": SEED,
        "engine": "evidence",
        "cases": sum(len(scores) for scores, _ in groups.values()),
        "groups": len(groups),
        "splits": SPLITS,
        "mean": {
            method: {
                budget: _mean([measured[method][budget] for measured in results.values() if budget in measured[method]])
                for budget in _budgets(max(len(scores) for scores, _ in groups.values()))
            }
            for method in METHODS
        },
        "results": results,
    }


def print_table(figures: Mapping[str, Any], out: Console) -> None:
    keys, rows = ("brier", "ece", "ece_floor", "auroc"), list[Sequence[str]]()
    for budget in figures["mean"]["raw"]:
        for method, by_budget in figures["mean"].items():
            rows.append((budget, method, *(cell(by_budget[budget], key, ".4f") for key in keys)))
        rows.append(("",) * (2 + len(keys)))
    print_rows(out, ("labels", "method", *keys), rows, "Mean of the groups")


def _budgets(answers: int) -> dict[str, int]:
    """Return the numbers of labels by name, as far as half of the answers suffices; `all` is the whole half."""
    half = (answers + 1) // 2
    return {str(budget): budget for budget in BUDGETS if budget <= half} | {"all": half}


def _measured(name: str, scores: FloatArray, correct: FloatArray) -> dict[str, dict[str, Figures]]:
    """Return method → budget → figures. The splits depend only on the group's name."""
    budgets = _budgets(len(correct))
    taken: dict[str, dict[str, list[Figures]]] = {method: {budget: [] for budget in budgets} for method in METHODS}
    for split in range(SPLITS):
        order = np.random.default_rng([SEED, split, crc32(name.encode())]).permutation(len(correct))
        test = order[budgets["all"] :]
        for (budget, labels), (method, fit_map) in product(budgets.items(), METHODS.items()):
            training = order[:labels]
            probabilities = fit_map(scores[training], correct[training])(scores[test])
            taken[method][budget].append(_figures(probabilities, correct[test], seed=split))
    return {
        method: {budget: _averaged(splits) for budget, splits in by_budget.items()}
        for method, by_budget in taken.items()
    }


def _figures(probabilities: FloatArray, correct: FloatArray, seed: int) -> Figures:
    area = auroc(probabilities, correct)
    return {
        "ece": ece(probabilities, correct),
        "ece_floor": ece_floor(probabilities, seed=seed),
        "brier": brier(probabilities, correct),
        "auroc": None if math.isnan(area) else area,
    }


def _averaged(many: Sequence[Figures]) -> Figures:
    """Return the mean of every figure; None if it is always None."""
    by_key = {key: [value for figures in many if (value := figures[key]) is not None] for key in many[0]}
    return {key: round(float(np.mean(values)), 4) if values else None for key, values in by_key.items()}


def _mean(many: Sequence[Figures]) -> dict[str, Any]:
    intervals = {f"{key}_ci": bootstrap_interval([figures[key] or 0.0 for figures in many]) for key in ("ece", "brier")}
    return {"groups": len(many), **_averaged(many), **intervals}


def _groups(path: Path) -> dict[str, Group]:
    """Return the answers by `llm/qset`, without groups whose halves are smaller than the smallest budget."""
    rows: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for name, score, correct in _rows(path):
        rows[name].append((score, correct))
    groups = {name: np.array(answers).T for name, answers in sorted(rows.items()) if len(answers) >= 2 * BUDGETS[0]}
    if not groups:
        raise MalformedInput(
            f"{path} has no group of {2 * BUDGETS[0]} answers or more, so nothing can be measured on it."
        )
    return {name: (scores, correct) for name, (scores, correct) in groups.items()}


def _rows(path: Path) -> Iterator[tuple[str, float, float]]:
    """Yield group, stated confidence and correctness of every answer. Raises MalformedInput."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = COLUMNS.difference(reader.fieldnames or ())
            if missing:
                raise MalformedInput(
                    f"{path} has no column {', '.join(sorted(missing))}: its first line must name them."
                )
            for row in reader:
                yield _row(row, f"{path}, line {reader.line_num}")
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise MalformedInput(f"{path} cannot be read: {error}.") from error


def _row(row: Mapping[str, str | None], where: str) -> tuple[str, float, float]:
    try:
        score, correct = float(row["stated_confidence"] or ""), LABELS[(row["correct"] or "").lower()]
    except (ValueError, KeyError):
        raise MalformedInput(f"{where}: stated_confidence must be a number and correct TRUE or FALSE.") from None
    if not 0 <= score <= 1:
        raise MalformedInput(f"{where}: stated_confidence must be from 0 to 1, not {score:g}.")
    return f"{row['llm']}/{row['qset']}", score, correct
