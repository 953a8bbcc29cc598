"""What each mechanism of finding causes is worth: the figures of three sets with one mechanism taken out at a time.

    python -m tests.benchmarks ablate-causes --rca FILE [--n 504] [--only NAME…] [--json FILE]

`invented` and `thin` are generated incidents of the classes that were not developed on, `thin` ones with little of each
kind of observation; their figures are the share of first causes that are right, and of decoys named first. `stated` and
`quoted` are the causes of FILE (`rca-cases`) that are told, and shown by the quoted lines. A loss of more than half an
interval of the first figure of a set is marked with a star.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from bot.evaluation.report import wilson_interval
from core.rca.cause_candidates import WEIGHTS
from core.rca.observations import Observations
from tests.benchmarks import rca_engines
from tests.benchmarks.incidents import ABLATIONS, Truth, graded, observed
from tests.benchmarks.rca_engines import by_evidence
from tests.evaluation.generate_incidents import generate

Cases = Sequence[tuple[Truth, Observations]]
NEVER = re.compile(r"(?!)")


@dataclass(frozen=True, slots=True)
class Mechanism:
    """What is put in its place, by the dotted name of what it replaces; `reads` changes what was read."""

    name: str
    instead: dict[str, Any] = field(default_factory=dict[str, Any])
    reads: Callable[[Observations], Observations] = lambda seen: seen


def _nothing(*_: Any, **__: Any) -> tuple[Any, ...]:
    return ()


MECHANISMS = (
    *(Mechanism(f"read: {name}", reads=change) for name, change in ABLATIONS.items()),
    *(Mechanism(f"feature: {name}", {"core.rca.cause_candidates.WEIGHTS": {**WEIGHTS, name: 0.0}}) for name in WEIGHTS),
    *(
        Mechanism(f"hypothesis: {name}", {f"core.rca.no_change._{name}": lambda *_: []})
        for name in ("external", "load", "record", "platform", "itself")
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Take the mechanisms of finding causes out, one at a time.")
    parser.add_argument("--rca", type=Path, required=True)
    parser.add_argument("--n", type=int, default=504)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[], help="what a mechanism's name begins with; repeatable")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    recorded = rca_engines.cases_of(given.rca)
    sets = {
        "invented": _invented(given.n, given.seed, thin=False),
        "thin": _invented(given.n, given.seed + 1, thin=True),
    }
    rows = {"everything": _figures(sets, recorded, Mechanism("everything"))}
    _print("everything", rows["everything"], rows["everything"])
    for each in MECHANISMS:
        if not given.only or each.name.startswith(tuple(given.only)):
            rows[each.name] = _figures(sets, recorded, each)
            _print(each.name, rows[each.name], rows["everything"])
    if given.json:
        given.json.write_text(json.dumps(rows, indent=2) + "\n", "utf-8")


def _invented(count: int, seed: int, *, thin: bool) -> Cases:
    async def read(folders: Sequence[Path]) -> Cases:
        cases = [await observed(each) for each in folders]
        return [each for each in cases if not each[0].developed_on]

    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder), count, seed, thin=thin)
        return asyncio.run(read(sorted(Path(folder).iterdir())))


def _figures(
    sets: dict[str, Cases], recorded: Sequence[rca_engines.RecordedCase], mechanism: Mechanism
) -> dict[str, list[float]]:
    with ExitStack() as stack:
        for name, instead in mechanism.instead.items():
            stack.enter_context(patch(name, instead))
        figures: dict[str, list[float]] = {}
        for name, cases in sets.items():
            each = [graded(truth, mechanism.reads(seen)) for truth, seen in cases]
            figures[name] = [float(one.first) for one in each]
            figures[f"{name}: decoy"] = [float(one.decoy) for one in each]
        rows = [asyncio.run(rca_engines.graded(by_evidence, case)) for case in recorded]
        figures["stated"] = [row.stated for row in rows if row.kind == rca_engines.HEADLINE]
        figures["quoted"] = [row.evidence for row in rows if row.kind == rca_engines.HEADLINE]
        return figures


def _print(name: str, row: dict[str, list[float]], everything: dict[str, list[float]]) -> None:
    shown: list[str] = []
    for key, values in row.items():
        low, high = wilson_interval([bool(value) for value in everything[key]])
        loss = float(np.mean(everything[key]) - np.mean(values)) * (-1 if key.endswith("decoy") else 1)
        shown.append(f"{np.mean(values):.2f}{' *' if loss > (high - low) / 2 else ''}")
    sys.stdout.write(f"| {name} | {' | '.join(shown)} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
