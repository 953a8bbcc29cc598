"""How often causes of each grade are right, on three sets of other origins.

The sets are generated incidents of the classes that were not developed on, recorded tool outputs (`rca-cases`), and
snapshots of clusters (`cloud-opsbench`). Beside the product's grades stands what a threshold would give that is chosen on
the two other sets, so that PRECISION of their strong causes are right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from bot.evaluation.report import cell, print_rows, wilson_interval
from core.confidence.calibrator import PROBABLE
from core.model.badge import Evaluation, Strength
from core.rca.explain import explain
from tests.benchmarks import cloud_opsbench, incidents, rca_engines
from tests.benchmarks.rca_engines import MAX_WORDS, observed

PRECISION = 0.9
GRADES = (Strength.STRONG, Strength.MODERATE, Strength.WEAK)


@dataclass(frozen=True, slots=True)
class Named:
    """A stated cause: the evaluation of its badge, and whether it is right."""

    evaluation: Evaluation
    right: bool

    @property
    def grade(self) -> Strength:
        return PROBABLE.strength(self.evaluation)


def measured(data: Path, count: int, seed: int) -> dict[str, Any]:
    """Return the figures of each set, and of each left out. Raises MalformedInput for invalid data."""
    sets = {
        "generated incidents": list(_generated(count, seed)),
        "recorded tool outputs": list(_tool_outputs(data / "rca-cases" / "cases.jsonl.gz")),
        "snapshots of clusters": list(_snapshots(data / "cloud-opsbench" / "boutique.jsonl.xz")),
    }
    figures = {
        name: _figures(each, [one for other in sets if other != name for one in sets[other]])
        for name, each in sets.items()
    }
    return {"measure": "cause_grades", "sets": figures}


def _generated(count: int, seed: int) -> Iterator[Named]:
    with incidents.invented(count, seed) as folder:
        for path in sorted(folder.glob("*/truth.json")):
            truth, observations = asyncio.run(incidents.observed(path.parent))
            explanation, evaluation = explain(observations)
            if evaluation is not None and not truth.developed_on:
                yield Named(evaluation, incidents.judged(truth, explanation, evaluation, 0.0).first)


def _tool_outputs(path: Path) -> Iterator[Named]:
    for case in rca_engines.cases_of(path):
        explanation, evaluation = explain(observed(case.given.question, case.given.outputs))
        if (
            evaluation is not None
            and explanation.cause is not None
            and case.kind in (rca_engines.HEADLINE, rca_engines.HEALTHY)
        ):
            cause = " ".join(explanation.cause.cause.split()[:MAX_WORDS])
            yield Named(evaluation, case.kind == rca_engines.HEADLINE and rca_engines.holds(cause, case.keys))


def _snapshots(path: Path) -> Iterator[Named]:
    for case in cloud_opsbench.cases_of(path):
        places = cloud_opsbench.places(case.outputs)
        _, evaluation = explain(observed(case.query, case.outputs, places))
        diagnoses = cloud_opsbench.by_evidence(case.query, case.outputs)
        if evaluation is not None and diagnoses:
            yield Named(evaluation, (diagnoses[0].fault, diagnoses[0].object) == (case.fault, case.object))


def _figures(causes: Sequence[Named], others: Sequence[Named]) -> dict[str, Any]:
    grades = {grade.value: _right([each for each in causes if each.grade is grade]) for grade in GRADES}
    least = threshold(others)
    return {
        **grades,
        "threshold": round(least, 3),
        "by_others": _right([each for each in causes if each.evaluation.rce >= least]),
    }


def threshold(causes: Sequence[Named]) -> float:
    """Return the lowest RCE from which PRECISION of the causes are right; above 1 if there is none."""
    ranked = sorted(causes, key=lambda each: -each.evaluation.rce)
    best, right = 1.01, 0
    for count, each in enumerate(ranked, start=1):
        right += each.right
        is_last = count == len(ranked) or ranked[count].evaluation.rce < each.evaluation.rce
        if is_last and right >= PRECISION * count:
            best = each.evaluation.rce
    return best


def _right(causes: Sequence[Named]) -> dict[str, Any]:
    right = [each.right for each in causes]
    if not right:
        return {"causes": 0}
    return {"causes": len(right), "right": round(sum(right) / len(right), 4), "right_ci": wilson_interval(right)}


def print_table(figures: Mapping[str, Any], console: Console) -> None:
    columns = [*(grade.value for grade in GRADES), "by_others"]
    rows = [
        (
            name,
            *(f"{cell(row[column], 'right')} of {row[column]['causes']}" for column in columns),
            str(row["threshold"]),
        )
        for name, row in figures["sets"].items()
    ]
    print_rows(console, ("", *columns, "threshold by the others"), rows, "Share of causes that are right, by grade")
