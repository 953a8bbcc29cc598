"""Fits the weights of `failing_lines` in `core/rca/knowledge.toml`, and prints them with what they find in tools that were left out.

`python -m tests.benchmarks failing-line-weights` reads `tests/benchmarks/data/failing_builds.jsonl.xz`: 258 builds of small made-up
projects, six by each of 43 tools, run to fail and put between steps that pass, in the manner of four CI systems. Their
labels follow from how the tools document their reports: from the first line of the first failure to the last of its
details. The ridge was chosen from 0.003 to 0.3 by families of tools (C, Java, Python, …), each found with the others.
"""

from __future__ import annotations

import json
import lzma
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from core.rca.build_log import NAMES, ReadLog

BUILDS = Path(__file__).parent / "data" / "failing_builds.jsonl.xz"
RIDGE = 0.1
ITERATIONS = 100
SHAPE = (len(NAMES), 5)  # inside, first, right before the first, last, right after the last

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Build:
    """A log that was read; `first` and `last` are rows of `features`."""

    tool: str
    family: str
    features: Floats
    first: int
    last: int


def main() -> None:
    builds = _builds()
    weights = fit(builds)
    for name, row in zip(NAMES, weights, strict=True):
        print(f"{name} = [{', '.join(f'{value + 0.0:.2f}' for value in row)}]")
    scores: list[tuple[float, float]] = []
    for family in sorted({build.family for build in builds}):
        learned = fit([build for build in builds if build.family != family])
        scores += [_score(learned, build) for build in builds if build.family == family]
    f1, exact = np.mean(scores, axis=0)
    print(f"families left out: line F1 {f1:.3f}, exact {exact:.3f}")


def fit(builds: Sequence[Build]) -> Floats:
    """The weights under which the labelled runs are most probable, each tool counting alike."""
    counts = Counter(build.tool for build in builds)

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(SHAPE)
        total, slope = RIDGE / 2 * float((weights**2).sum()), RIDGE * weights
        for build in builds:
            share = 1 / (len(counts) * counts[build.tool])
            value, direction = _surprise(weights, build)
            total, slope = total + share * value, slope + share * direction
        return total, slope.ravel()

    optimum = minimize(loss, np.zeros(SHAPE).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS})
    return optimum.x.reshape(SHAPE)


def _scores(weights: Floats, features: Floats) -> tuple[Floats, Floats]:
    """What a run gains by its first and by its last line; their sum is the run's score."""
    inside, first, before, last, after = (features @ weights).T
    total = np.cumsum(inside)
    opened, closed = first - (total - inside), total + last
    opened[1:] += before[:-1]
    closed[:-1] += after[1:]
    return opened, closed


def _surprise(weights: Floats, build: Build) -> tuple[float, Floats]:
    """The negative log-probability of the labelled run among all runs, and its gradient."""
    opened, closed = _scores(weights, build.features)
    forward = np.logaddexp.accumulate(opened)
    backward = np.logaddexp.accumulate(closed[::-1])[::-1]
    everything = np.logaddexp.reduce(forward + closed)
    first, last = np.exp(opened + backward - everything), np.exp(closed + forward - everything)
    inside = np.cumsum(first) - np.cumsum(last) + last
    inside[build.first : build.last + 1] -= 1
    first[build.first] -= 1
    last[build.last] -= 1
    none = [0.0]
    expected = np.array([inside, first, [*first[1:], *none], last, [*none, *last[:-1]]])
    surprise = everything - opened[build.first] - closed[build.last]
    return float(surprise), (expected @ build.features).T


def _score(weights: Floats, build: Build) -> tuple[float, float]:
    """Line F1 of the most probable run, and whether it is exactly the labelled one."""
    opened, closed = _scores(weights, build.features)
    last = int(np.argmax(np.maximum.accumulate(opened) + closed))
    first = int(np.argmax(opened[: last + 1]))
    common = max(0, min(last, build.last) - max(first, build.first) + 1)
    lengths = last - first + 1 + build.last - build.first + 1
    return 2 * common / lengths, float((first, last) == (build.first, build.last))


def _builds() -> list[Build]:
    with lzma.open(BUILDS, "rt", encoding="utf-8") as lines:
        return [_build(json.loads(line)) for line in lines]


def _build(row: dict[str, str | int]) -> Build:
    read = ReadLog(str(row["log"]))
    first, end = np.searchsorted(read.numbers, [int(row["start"]), int(row["end"])])
    return Build(str(row["tool"]), str(row["family"]), read.features.astype(np.float64), int(first), int(end) - 1)
