"""Fit the weights of `core.rca.cause_candidates` on invented incidents: `python -m tests.evaluation.fit_causes DIR`.

Only the classes that are for developing are read. They do not show everything that happens, so a normal prior keeps the
weights near `EXPECTED`, which an engineer would give them, and each has the sign that its meaning gives it.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from core.rca.cause_candidates import UNKNOWN, WEIGHTS, cause_candidates, log_odds
from core.rca.incident_signals import survey
from tests.benchmarks.incidents import Truth, observed

DEVIATION = 1.0  # of the weights' prior
EXPECTED = {
    "own": 4.0,
    "callers": 2.5,
    "creep": 2.5,
    "words": 2.0,
    "kinds": 2.0,
    "gap": -0.4,
    "inert": -5.0,
    "misfit": -1.5,
    "none": 0.5,
    "evidence": 6.0,
}
FALLING = frozenset({"gap", "inert", "misfit"})  # what speaks against a change


@dataclass(frozen=True, slots=True)
class Choice:
    """The features of a case's suspects, one row each, and which of them are right."""

    kind: str
    features: NDArray[np.float64]
    right: NDArray[np.bool_]


def choices(folder: Path, *, developed_on: bool = True) -> list[Choice]:
    """Return the cases below a folder that name a right suspect at all."""
    found: list[Choice] = []
    for path in sorted(folder.glob("*/truth.json")):
        truth, observations = asyncio.run(observed(path.parent))
        if truth.developed_on is not developed_on:
            continue
        listed = [each for each in cause_candidates(survey(observations), observations) if each.features]
        rows = np.array([[each.features.get(name, 0.0) for name in WEIGHTS] for each in listed])
        right = np.array([_is_right(each.change.id if each.change else "", truth) for each in listed])
        if right.any():
            found.append(Choice(truth.kind, rows, right))
    return found


def _is_right(named: str, truth: Truth) -> bool:
    return named in truth.culprits if truth.culprits else not named


def fitted(cases: Sequence[Choice]) -> dict[str, float]:
    """Return the most probable weights."""
    start = np.array([EXPECTED[name] for name in WEIGHTS])
    bounds = [(None, 0.0) if name in FALLING else (None, None) if name == "none" else (0.0, None) for name in WEIGHTS]

    def loss(weights: NDArray[np.float64]) -> float:
        total = float((((weights - start) / DEVIATION) ** 2).sum() / 2)
        for case in cases:
            odds = np.append(case.features @ weights, UNKNOWN)
            chances = np.exp(odds - odds.max())
            total -= float(np.log(chances[:-1][case.right].sum() / chances.sum()))
        return total

    result = minimize(loss, start, method="L-BFGS-B", bounds=bounds)
    return dict(zip(WEIGHTS, (round(float(weight), 2) for weight in result.x), strict=True))


def badges(cases: Sequence[Choice]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what a badge is made of, and whether the first cause was right, each class by the weights of the others."""
    rows: list[float] = []
    right: list[float] = []
    for kind in sorted({case.kind for case in cases}):
        weights = np.array(list(fitted([case for case in cases if case.kind != kind]).values()))
        for case in (case for case in cases if case.kind == kind):
            odds = np.append(case.features @ weights, UNKNOWN)
            chances = np.exp(odds - odds.max()) / np.exp(odds - odds.max()).sum()
            order = np.argsort(-chances[:-1])
            rows.append(log_odds(float(chances[order[0]])))
            right.append(float(case.right[order[0]]))
    return np.array(rows), np.array(right)


def calibrated(rows: NDArray[np.float64], right: NDArray[np.float64]) -> list[float]:
    """Return the intercept and the slope of the most probable logistic curve that does not fall."""
    columns = np.column_stack([np.ones(len(rows)), rows])

    def loss(weights: NDArray[np.float64]) -> float:
        linear = columns @ weights
        return float(np.logaddexp(0, linear).sum() - right @ linear + (weights[1:] ** 2).sum() / 2)

    found = minimize(loss, np.zeros(columns.shape[1]), method="L-BFGS-B", bounds=[(None, None), (0, None)])
    return [round(float(weight), 2) for weight in found.x]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    cases = choices(parser.parse_args().folder)
    for name, weight in fitted(cases).items():
        print(f"{name} = {weight}")  # noqa: T201
    print("badge:", calibrated(*badges(cases)))  # noqa: T201


if __name__ == "__main__":
    main()
