"""Fits `core/triage/paging_prior.json`, by which incidents are judged before there are outcomes to learn from.

    python -m tests.benchmarks fit-paging [--write]

The incidents are generated: worlds of `tests.benchmarks.page_scenarios`, and of `tests.benchmarks.pages`. Each family of
worlds is judged by a fit on the others; these judgements make the calibration, and the printed figures. `page-scenarios`
measures the fit on all of them, on other seeds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import numpy as np

from core.confidence.calibrator import Label, fit
from core.confidence.measures import auroc
from core.model.badge import Evaluation
from core.triage.paging import PRIOR_FILE, Episode, Facts, PageModel, facts_in_order, fitted_to
from tests.benchmarks import page_scenarios, pages

WORLDS = {"generated": 80, "mixture": 160}  # per family; else OTHER_WORLDS, because ordinary days outnumber storms
OTHER_WORLDS = 40
FIRST_SEED = 1_000_000  # of generated worlds; the command `pages` begins at 1
INCIDENTS = 120  # of a generated world
KEPT = 1_000  # judgements kept for the calibration
DIGITS = 4

Row = tuple[Episode, Facts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    worlds = {family: _rows(family) for family in ("generated", *page_scenarios.SCENARIOS)}
    judged: list[tuple[float, bool]] = []
    figures: dict[str, Any] = {}
    for family, rows in worlds.items():
        model = fitted_to(list(chain.from_iterable(other for name, other in worlds.items() if name != family)))
        made = [(model.probability(facts), bool(episode.needed)) for episode, facts in rows]
        judged += made
        figures[family] = _figures(made, rows)
        print(f"{family}: {figures[family]}")
    if parser.parse_args().write:
        _write(fitted_to(list(chain.from_iterable(worlds.values()))), judged, figures)


def _rows(family: str) -> list[Row]:
    seeds = range(WORLDS.get(family, OTHER_WORLDS))
    worlds = (
        pages.generate(INCIDENTS, FIRST_SEED + seed) if family == "generated" else page_scenarios.world(family, seed)
        for seed in seeds
    )
    return [row for episodes in worlds for row in facts_in_order(episodes)]


def _figures(made: Sequence[tuple[float, bool]], rows: Sequence[Row]) -> dict[str, float]:
    needed = np.array([float(each) for _, each in made])
    claimed, severity = (
        np.array([each for each, _ in made]),
        np.array([pages.BY_SEVERITY[e.severity] for e, _ in rows]),
    )
    return {
        "incidents": len(rows),
        "needed": round(float(needed.mean()), 3),
        "auroc": round(auroc(claimed, needed), 3),
        "auroc_of_severity": round(auroc(severity, needed), 3),
    }


def _write(model: PageModel, judged: Sequence[tuple[float, bool]], figures: dict[str, Any]) -> None:
    ordered = sorted(judged)
    kept = [ordered[number * len(ordered) // KEPT] for number in range(KEPT)]
    labels = [Label(Evaluation(1.0, probability), needed) for probability, needed in judged]
    calibrator = fit(labels, "", datetime.now(UTC))
    assert calibrator is not None
    (steps,) = calibrator.steps
    written = {
        "from": "generated incidents: python -m tests.benchmarks fit-paging --write; no incident of any company",
        "judged_by_a_fit_on_the_other_families": figures,
        **{name: np.round(getattr(model, name), DIGITS).tolist() for name in ("mean", "scale", "weights", "bias")},
        "upper": np.round(steps.upper, DIGITS).tolist(),
        "probabilities": np.round(steps.probabilities, DIGITS).tolist(),
        "judged": [round(probability, DIGITS) for probability, _ in kept],
        "needed": [int(needed) for _, needed in kept],
    }
    lines = (f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in written.items())
    PRIOR_FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
