"""`python -m tests.benchmarks log-templates`: are the log messages of one statement grouped together, and only those?

`DIR/<system>/*_log_structured.csv` with `Content`, `EventId` and `EventTemplate`, as in loghub. Grouping accuracy is the
share of messages whose group is exactly that of their event; parsing accuracy the share whose template is word for word
that of their event (Zhu et al., “Tools and Benchmarks for Automated Log Parsing”, ICSE-SEIP 2019), neighbouring
wildcards counted as one. `drain` is drain3's Drain with its default settings on the same messages.
"""

from __future__ import annotations

import csv
import re
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import numpy as np
from drain3.drain import Drain, LogCluster  # it has none
from rich.console import Console

from bot.evaluation.report import SEED, bootstrap_interval, print_rows
from core.model.errors import MalformedInput
from core.ports import LogLine
from core.rca.log_lines import grouped

_WILDCARDS = re.compile(r"<\*>(?:[^\w\s]?<\*>)+")
_AT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class System:
    """The messages of one system, each with its event and the template of that."""

    name: str
    messages: tuple[str, ...]
    events: tuple[str, ...]
    templates: tuple[str, ...]


def run(folder: Path) -> dict[str, Any]:
    """Return the figures. Raises MalformedInput for a folder in another format."""
    systems = [_system(path) for path in sorted(folder.glob("*/*log_structured.csv"))]
    if not systems:
        raise MalformedInput(f"No system below {folder}: expected NAME/NAME_2k.log_structured.csv.")
    return {
        "measure": "log-templates",
        "engine": "evidence",
        "seed": SEED,
        "cases": len(systems),
        "results": {name: _measured(method, systems) for name, method in METHODS.items()},
    }


def print_table(figures: Mapping[str, Any], console: Console) -> None:
    results = figures["results"]
    headers = [f"{name}, {figure}" for name in results for figure in ("grouping", "parsing")]
    measured = {
        system: [row["systems"][system] for row in results.values()]
        for system in next(iter(results.values()))["systems"]
    }
    rows = [
        (name, *(f"{one[key]:.3f}" for one in each for key in ("grouping_accuracy", "parsing_accuracy")))
        for name, each in (*measured.items(), ("mean", results.values()))
    ]
    print_rows(console, ("system", *headers), rows, f"{figures['cases']} systems")


Method = Callable[[Sequence[str]], list[tuple[int, str]]]  # messages → the group and the template of each


def plumbline(messages: Sequence[str]) -> list[tuple[int, str]]:
    lines = [LogLine("", _AT, "", message) for message in messages]
    templates = {
        id(line): (number, template.text) for number, template in enumerate(grouped(lines)) for line in template.lines
    }
    return [templates[id(line)] for line in lines]


def drain(messages: Sequence[str]) -> list[tuple[int, str]]:
    parser = Drain()
    clusters = [cast("LogCluster", parser.add_log_message(message)[0]) for message in messages]
    return [(cluster.cluster_id, cast("str", cluster.get_template())) for cluster in clusters]


METHODS: Mapping[str, Method] = {"drain": drain, "plumbline": plumbline}


def grouping_accuracy(assigned: Sequence[int], events: Sequence[str]) -> float:
    """The share of messages whose group in `assigned` holds exactly the messages of their event."""
    groups, wanted = _groups(assigned), {frozenset(group) for group in _groups(events).values()}
    return sum(len(group) for group in groups.values() if frozenset(group) in wanted) / len(events)


def parsing_accuracy(parsed: Sequence[str], templates: Sequence[str]) -> float:
    """The share of messages whose template is that of their event."""
    return float(np.mean([_plain(one) == _plain(right) for one, right in zip(parsed, templates, strict=True)]))


def _plain(template: str) -> str:
    return " ".join(_WILDCARDS.sub("<*>", template).split())


def _groups(labels: Sequence[Hashable]) -> dict[Hashable, list[int]]:
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for number, label in enumerate(labels):
        groups[label].append(number)
    return groups


def _measured(method: Method, systems: Sequence[System]) -> dict[str, Any]:
    figures: dict[str, dict[str, float]] = {}
    started = time.process_time()
    for system in systems:
        groups, texts = zip(*method(system.messages), strict=True)
        figures[system.name] = {
            "grouping_accuracy": round(grouping_accuracy(groups, system.events), 4),
            "parsing_accuracy": round(parsing_accuracy(texts, system.templates), 4),
        }
    seconds = time.process_time() - started
    grouping = [one["grouping_accuracy"] for one in figures.values()]
    return {
        "grouping_accuracy": round(float(np.mean(grouping)), 4),
        "grouping_accuracy_ci": bootstrap_interval(grouping),
        "parsing_accuracy": round(float(np.mean([one["parsing_accuracy"] for one in figures.values()])), 4),
        "lines_per_s": round(sum(len(system.messages) for system in systems) / seconds),
        "systems": figures,
    }


def _system(path: Path) -> System:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [(row["Content"], row["EventId"], row["EventTemplate"]) for row in csv.DictReader(file)]
        messages, events, templates = zip(*rows, strict=True)
    except (OSError, ValueError, KeyError, csv.Error) as error:
        raise MalformedInput(
            f"Cannot read {path} as a table with Content, EventId and EventTemplate: {error!r}"
        ) from error
    return System(path.parent.name, messages, events, templates)
