"""`python -m tests.benchmarks ci-logs`: which lines of a build log explain the failure?

Each case is measured with 0, 1, 2, 5 and all of the other labelled failures of its repository known, drawn by chance.
Only lines that are not blank count. The right lines are those of `chunk` where they first stand in the log, numbers,
white space and escape sequences left out; a chunk may begin and end in the middle of a line. A case whose chunk is not
in its log is left out, and counted in `not_found`. Nothing in the product was fitted to such a file.

Baselines, from the same histories: `keyword` names every line that has a word for failure; `template_vote` every line
whose text without digits was, in most of the known failures that have it, part of the failure.
"""

from __future__ import annotations

import json
import lzma
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from bot.evaluation.report import SEED, bootstrap_interval, print_rows
from core.model.errors import MalformedInput
from core.rca.failing_lines import FailureHistory, PastFailure, failing_range

HISTORIES = (0, 1, 2, 5, None)  # other failures of the repository that are known; None: all
FIGURES = ("line_precision", "line_recall", "line_f1", "exact")
KEYWORDS = re.compile(r"error|fail|fatal|exception", re.IGNORECASE)
_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\S{1,20}Z ")  # as `with_marks` writes it
_COLOUR = re.compile(r"\x1b?\[[0-9;]*[mK]")
_FAILED = re.compile(r"The command .{1,400}exited with (?P<code>[1-9]\d{0,2})")
_DIGITS = re.compile(r"\d+")
_IGNORED = re.compile(r"\x1b?\[[0-9;]*[mK]|[\d\s\x00-\x1f]+")


@dataclass(frozen=True, slots=True)
class Case:
    """A log and the lines that explain its failure, numbered from 0, none of them blank."""

    project: str
    log: str
    lines: tuple[int, ...]


def run(path: Path, marked: bool = False) -> dict[str, Any]:
    """Return the figures, with `marked` of the logs as GitHub Actions would write them.

    Raises MalformedInput for a file in another format.
    """
    rows = list(_rows(path))
    cases = [Case(row["project"], row["log"], lines) for row in rows if (lines := find(row["log"], row["chunk"]))]
    if not cases:
        raise MalformedInput(f"No case of {path} has its chunk in its log: check the file.")
    if marked:
        cases = [with_marks(case) for case in cases]
    timer = _Timer()
    methods: dict[str, Method] = {
        "plumbline": _Plumbline(cases, timer),
        "keyword": lambda case, _: [n for n, line in enumerate(case.log.split("\n")) if KEYWORDS.search(line)],
        "template_vote": _TemplateVote(cases),
    }
    results = {name: _results(cases, method) for name, method in methods.items()}
    return {
        "measure": "ci-logs",
        "engine": "evidence",
        "marked": marked,
        "seed": SEED,
        "cases": len(cases),
        "not_found": len(rows) - len(cases),
        "results": results.pop("plumbline"),
        "baselines": results,
        "lines_per_s": round(timer.lines / timer.seconds),
    }


def print_table(figures: Mapping[str, Any], console: Console) -> None:
    title = f"{figures['cases']} build logs, {figures['lines_per_s']:,} lines a second of one core"
    rows = list[Sequence[str]]()
    for method, results in {"plumbline": figures["results"], **figures["baselines"]}.items():
        for history, row in results.items():
            intervals = [f"{low:.2f}–{high:.2f}" for low, high in (row["line_f1_ci"], row["exact_ci"])]
            rows.append((method, history, *(f"{row[name]:.3f}" for name in FIGURES), *intervals))
    print_rows(console, ("method", "known failures", *FIGURES, "line_f1 95 %", "exact 95 %"), rows, title)


def with_marks(case: Case) -> Case:
    """Return the case with a time before each line, a group around each command and an error after each that failed."""
    lines: list[str] = []
    places: dict[int, int] = {}
    for number, line in enumerate(case.log.split("\n")):
        text = _COLOUR.sub("", line).rstrip().rpartition("\r")[2]
        command = text.removeprefix("$ ")
        places[number] = len(lines)
        if command == text:
            lines.append(line)
        else:
            lines += [f"##[group]Run {command}", "shell: /usr/bin/bash -e {0}", "##[endgroup]"]
        if failed := _FAILED.match(text):
            lines.append(f"##[error]Process completed with exit code {failed['code']}.")
    started = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
    times = (started + timedelta(milliseconds=137 * number) for number in range(len(lines)))
    log = "\n".join(f"{at:%Y-%m-%dT%H:%M:%S.%f}0Z {line}" for at, line in zip(times, lines, strict=True))
    return Case(case.project, log, tuple(places[number] for number in case.lines))


def find(log: str, chunk: str) -> tuple[int, ...]:
    """The numbers of the lines of `log`, blank ones left out, in which `chunk` first stands; empty if nowhere."""
    wanted = [text for line in chunk.split("\n") if (text := _IGNORED.sub("", line))]
    given = [(number, text) for number, line in enumerate(log.split("\n")) if (text := _IGNORED.sub("", line))]
    if not wanted:
        return ()
    for start in range(len(given) - len(wanted) + 1):
        if _matches([text for _, text in given[start : start + len(wanted)]], wanted):
            return tuple(number for number, _ in given[start : start + len(wanted)])
    return ()


def _matches(lines: Sequence[str], wanted: Sequence[str]) -> bool:
    if len(wanted) == 1:
        return wanted[0] in lines[0]
    return lines[0].endswith(wanted[0]) and lines[-1].startswith(wanted[-1]) and lines[1:-1] == wanted[1:-1]


Method = Callable[[Case, Sequence[int]], Iterable[int]]  # a case, the known ones by number → lines of the case


@dataclass(slots=True)
class _Timer:
    """Processor time of one core, so that other processes do not count."""

    lines: int = 0
    seconds: float = 0.0


class _Plumbline:
    def __init__(self, cases: Sequence[Case], timer: _Timer) -> None:
        self._failures = [PastFailure(case.log, range(case.lines[0], case.lines[-1] + 1)) for case in cases]
        self._timer = timer

    def __call__(self, case: Case, others: Sequence[int]) -> range:
        history = FailureHistory(self._failures[other] for other in others)
        started = time.process_time()
        numbers = failing_range(case.log, history)
        self._timer.seconds += time.process_time() - started
        self._timer.lines += case.log.count("\n") + 1
        return numbers


class _TemplateVote:
    def __init__(self, cases: Sequence[Case]) -> None:
        self._templates = [_templates(case) for case in cases]
        self._failing = [
            {lines[number] for number in case.lines} for case, lines in zip(cases, self._templates, strict=True)
        ]
        self._all = [set(lines) for lines in self._templates]
        self._number = {id(case): number for number, case in enumerate(cases)}

    def __call__(self, case: Case, history: Sequence[int]) -> list[int]:
        seen = Counter(template for other in history for template in self._all[other])
        failing = Counter(template for other in history for template in self._failing[other])
        lines = self._templates[self._number[id(case)]]
        return [number for number, template in enumerate(lines) if failing[template] * 2 > seen[template]]


def _templates(case: Case) -> list[str]:
    return [_DIGITS.sub("", line).strip() for line in case.log.split("\n")]


def _results(cases: Sequence[Case], method: Method) -> dict[str, dict[str, Any]]:
    same_project: defaultdict[str, list[int]] = defaultdict(list)
    for number, case in enumerate(cases):
        same_project[case.project].append(number)
    results: dict[str, dict[str, Any]] = {}
    for history in HISTORIES:
        draws = random.Random(SEED)
        scores: list[tuple[float, ...]] = []
        for number, case in enumerate(cases):
            others = [other for other in same_project[case.project] if other != number]
            drawn = others if history is None else draws.sample(others, min(history, len(others)))
            scores.append(_score(case, method(case, drawn)))
        results["all" if history is None else str(history)] = _figures(scores)
    return results


def _score(case: Case, numbers: Iterable[int]) -> tuple[float, ...]:
    lines = case.log.split("\n")
    named = {number for number in numbers if _IGNORED.sub("", _TIME.sub("", lines[number]))}
    right = set(case.lines)
    common = len(named & right)
    precision, recall = common / max(len(named), 1), common / len(right)
    return precision, recall, 2 * common / (len(named) + len(right)), float(named == right)


def _figures(scores: Sequence[tuple[float, ...]]) -> dict[str, Any]:
    columns = dict(zip(FIGURES, np.array(scores).T, strict=True))
    figures: dict[str, Any] = {name: round(float(values.mean()), 4) for name, values in columns.items()}
    return figures | {f"{name}_ci": bootstrap_interval(columns[name].tolist()) for name in ("line_f1", "exact")}


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                yield {name: row[name] for name in ("project", "log", "chunk")}
    except (OSError, lzma.LZMAError, UnicodeDecodeError, ValueError, KeyError, TypeError) as error:
        raise MalformedInput(
            f"Cannot read {path} as JSON lines with `project`, `log` and `chunk`, plain or .xz: {error}"
        ) from error
