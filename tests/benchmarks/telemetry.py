"""`python -m tests.benchmarks telemetry`: the root-cause service from metrics alone, in the form of the PetShop data.

`DIR/<scenario>/{graph.csv, noissue/metrics.csv, test/issue_N/{metrics.csv, target.json}}`, or the same below
`DIR/dataset`. `plumbline` is `core.rca.dependencies`. Beside it stand two methods of the PetShop paper (Hardt et al., CLeaR
2024), written anew: `traversal` names the anomalous services that call no anomalous one, `ranked_correlation` the
anomalous services whose values correlate best with the symptom's. Anomalous is what is more than five deviations from
the median of ordinary operation. An empty answer is a miss.
"""

from __future__ import annotations

import csv
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from bot.evaluation.report import SEED, bootstrap_interval, print_rows
from core.model.errors import MalformedInput
from core.rca.dependencies import Telemetry, origins

SCENARIOS = ("low_traffic", "high_traffic")  # the others come without ordinary operation
CUTOFFS = (1, 3)
REQUESTS = ("requests", "Sum")
AVAILABILITY = "availability"  # percent of requests that succeed; of every other metric, more is worse
MAD_TO_SIGMA = 1.4826  # of a normal distribution
SIGMAS = 5.0  # from the median, beyond which a value is anomalous
FIRST_ROW = 2  # of an issue, from which on the baselines look for the symptom
MIN_POINTS = 10  # of ordinary operation, without which the baselines call nothing anomalous

Values = NDArray[np.float64]
Frame = Mapping[tuple[str, str, str], Values]  # service, metric, statistic → values by time
Graph = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Issue:
    """What a method is given, and the service that it should name."""

    scenario: str
    graph: Graph
    symptom: str
    metric: str
    statistic: str
    usual: Frame
    now: Frame
    cause: str

    def columns(self, frame: Frame, metric: tuple[str, str]) -> dict[str, Values]:
        return {service: values for (service, *metric_of), values in frame.items() if tuple(metric_of) == metric}


def run(folder: Path) -> dict[str, Any]:
    """Return the figures. Raises MalformedInput for a folder in another format."""
    issues = list(_issues(folder / "dataset" if (folder / "dataset").is_dir() else folder))
    if not issues:
        raise MalformedInput(f"No test issue below {folder}: expected {SCENARIOS[0]}/test/issue_0/target.json.")
    ranks = {name: [_rank(method(issue), issue.cause) for issue in issues] for name, method in METHODS.items()}
    return {
        "measure": "telemetry",
        "engine": "evidence",
        "seed": SEED,
        "cases": len(issues),
        "results": {name: _figures(issues, ranked) for name, ranked in ranks.items()},
    }


def print_table(figures: Mapping[str, Any], console: Console) -> None:
    headers = ("method", "top1", "top1 95 %", "top3", "top3 95 %", "by group, top1 / top3")
    rows = list[Sequence[str]]()
    for name, row in figures["results"].items():
        top1, top3 = (f"{low:.2f}–{high:.2f}" for low, high in (row["top1_ci"], row["top3_ci"]))
        groups = "\n".join(f"{group}: {one['top1']:.2f} / {one['top3']:.2f}" for group, one in row["by_group"].items())
        rows.append((name, f"{row['top1']:.3f}", top1, f"{row['top3']:.3f}", top3, groups))
    print_rows(console, headers, rows, f"{figures['cases']} issues")


def plumbline(issue: Issue) -> list[str]:
    metric = (issue.metric, issue.statistic)
    usual, now = (
        Telemetry(_worse(issue, issue.columns(frame, metric)), issue.columns(frame, REQUESTS))
        for frame in (issue.usual, issue.now)
    )
    return [service for service, score in origins(issue.graph, issue.symptom, usual, now).items() if score > 0]


def traversal(issue: Issue) -> list[str]:
    anomalous = _anomalous(issue)
    best = {service: anomalous[service] for service in [issue.symptom] if service in anomalous}
    waiting: list[tuple[str, tuple[str, ...]]] = [(service, (service,)) for service in best]
    while waiting:
        caller, path = waiting.pop()
        for callee in issue.graph.get(caller, ()):
            if callee in anomalous and callee not in path:
                way = (*path, callee)
                best[callee] = max(best.get(callee, 0.0), sum(anomalous[service] for service in way))
                waiting.append((callee, way))
    ends = {
        service: score for service, score in best.items() if not anomalous.keys() & set(issue.graph.get(service, ()))
    }
    return sorted(ends, key=lambda service: (-ends[service], service))


def ranked_correlation(issue: Issue) -> list[str]:
    from scipy.stats import pearsonr  # a second of imports, which every worker of the tests would wait for

    columns = issue.columns(issue.now, (issue.metric, issue.statistic))
    chances: dict[str, float] = {}
    for service in _anomalous(issue).keys() - {issue.symptom}:
        both = ~(np.isnan(columns[service]) | np.isnan(columns[issue.symptom]))
        pair = columns[service][both], columns[issue.symptom][both]
        if both.sum() >= 2 and all(np.ptp(values) > 0 for values in pair):
            chances[service] = float(pearsonr(*pair).pvalue)
    return sorted(chances, key=lambda service: (chances[service], service))


METHODS: Mapping[str, Callable[[Issue], list[str]]] = {
    "traversal": traversal,
    "ranked_correlation": ranked_correlation,
    "plumbline": plumbline,
}


def _anomalous(issue: Issue) -> dict[str, float]:
    """Service → deviations from its median at the first anomalous row of the symptom; empty if there is none."""
    metric = (issue.metric, issue.statistic)
    usual, now = issue.columns(issue.usual, metric), issue.columns(issue.now, metric)
    scores = {
        service: _deviations(past, values)
        for service, values in now.items()
        if (past := usual[service][~np.isnan(usual[service])] if service in usual else np.empty(0)).size >= MIN_POINTS
    }
    rows = np.flatnonzero(scores.get(issue.symptom, np.empty(0))[FIRST_ROW:] > SIGMAS)
    if not rows.size:
        return {}
    row = FIRST_ROW + int(rows[0])
    return {service: float(deviations[row]) for service, deviations in scores.items() if deviations[row] > SIGMAS}


def _deviations(usual: Values, values: Values) -> Values:
    median = np.median(usual)
    sigma = MAD_TO_SIGMA * float(np.median(np.abs(usual - median)))
    return np.nan_to_num(np.abs(values - median) / max(sigma, 1e-9))


def _worse(issue: Issue, columns: Mapping[str, Values]) -> dict[str, Values]:
    return {service: 100 - values if issue.metric == AVAILABILITY else values for service, values in columns.items()}


def _rank(answer: Sequence[str], cause: str) -> float:
    return answer.index(cause) + 1 if cause in answer else math.inf


def _figures(issues: Sequence[Issue], ranks: Sequence[float]) -> dict[str, Any]:
    groups: defaultdict[str, list[float]] = defaultdict(list)
    for issue, rank in zip(issues, ranks, strict=True):
        groups[f"{issue.scenario}/{issue.metric}"].append(rank)
    figures: dict[str, Any] = _hits(ranks)
    for cutoff in CUTOFFS:
        figures[f"top{cutoff}_ci"] = bootstrap_interval([float(rank <= cutoff) for rank in ranks])
    return figures | {"by_group": {group: {"cases": len(ranked)} | _hits(ranked) for group, ranked in groups.items()}}


def _hits(ranks: Sequence[float]) -> dict[str, float]:
    return {f"top{cutoff}": round(float(np.mean([rank <= cutoff for rank in ranks])), 4) for cutoff in CUTOFFS}


def _issues(folder: Path) -> Iterator[Issue]:
    for scenario in SCENARIOS:
        targets = sorted((folder / scenario / "test").glob("*/target.json"))
        if not targets:
            continue
        try:
            graph = _graph(folder / scenario / "graph.csv")
            usual = _frame(folder / scenario / "noissue" / "metrics.csv")
            for path in targets:
                target = json.loads(path.read_text("utf-8"))
                symptom, cause = target["target"], target["root_cause"]["node"]
                now = _frame(path.parent / "metrics.csv")
                yield Issue(scenario, graph, symptom["node"], symptom["metric"], symptom["agg"], usual, now, cause)
        except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
            raise MalformedInput(f"Cannot read {folder / scenario} as PetShop data: {error!r}") from error


def _graph(path: Path) -> Graph:
    with path.open(encoding="utf-8", newline="") as file:
        (_, *services), *rows = csv.reader(file)
    return {
        caller: tuple(service for service, calls in zip(services, row, strict=True) if calls and float(calls))
        for caller, *row in rows
    }


def _frame(path: Path) -> Frame:
    """Three header rows (service, metric, statistic), perhaps a row that names the index, then a row for each time."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    names = zip(*(row[1:] for row in rows[:3]), strict=True)
    points = [row[1:] for row in rows[3:] if row[0].replace(".", "", 1).isdigit()]
    columns = zip(*points, strict=True)
    return {
        (service, metric, statistic): np.array([float(value) if value else math.nan for value in column])
        for (service, metric, statistic), column in zip(names, columns, strict=True)
    }
