"""`python -m tests.benchmarks severity`: how often the suggested severity is the incident's own, each judged by all the others.

Incidents are JSON lines, plain or .gz, with `severity`, a title (`title` or `alert`), and as far as they have them
`summary`, `description`, `body`, `service` and `labels`. Those whose severity is none of ours are left out, and those
that say the same are judged without each other. The baseline always names the most frequent severity of the others.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from bot.evaluation.report import SEED, bootstrap_interval
from bot.evaluation.triage import AT, as_incident
from core.confidence.measures import ece
from core.model.alert import Severity
from core.model.errors import MalformedInput
from core.model.explanation import PastIncident
from core.triage.history import IncidentHistory, assess_severity

_WORD = re.compile(r"\w+")


def run(path: Path) -> dict[str, Any]:
    """Raises MalformedInput for a file that is not as described, or with fewer than two incidents."""
    incidents = list(_incidents(path))
    if len(incidents) < 2:
        raise MalformedInput(f"{path} has fewer than two incidents with a severity.")
    right: list[float] = []
    baseline: list[float] = []
    claimed: list[float] = []
    for incident in incidents:
        others = [each for each in incidents if _key(each) != _key(incident)]
        baseline.append(float(_most_frequent(others) is incident.severity))
        new = replace(
            as_incident(incident.title, incident.description, incident.id),
            service=incident.service,
            labels=incident.labels,
        )
        suggestion = assess_severity(new, IncidentHistory(others))
        if suggestion is not None:
            right.append(float(suggestion.severity is incident.severity))
            claimed.append(suggestion.evaluation.rce)
    return {
        "measure": "severity",
        "engine": "evidence",
        "seed": SEED,
        "cases": len(incidents),
        "suggested": round(len(right) / len(incidents), 4),
        "right": round(float(np.mean(right)), 4) if right else None,
        "right_ci": bootstrap_interval(right) if right else None,
        "most_frequent": round(float(np.mean(baseline)), 4),
        "ece_uncalibrated": round(ece(np.array(claimed), np.array(right)), 4) if right else None,
    }


def print_figures(figures: dict[str, Any], console: Console) -> None:
    console.print(
        f"{figures['cases']} incidents: a severity is suggested for {figures['suggested']:.0%}, right in "
        f"{figures['right']} of them (95 % {figures['right_ci']}); the most frequent one is right in "
        f"{figures['most_frequent']}."
    )


def _incidents(path: Path) -> Iterator[PastIncident]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                row: dict[str, Any] = json.loads(line)
                severity = str(row["severity"])
                title = str(row.get("title") or row["alert"])
            except (ValueError, KeyError, TypeError) as error:
                raise MalformedInput(f"{path}, line {number}: not an incident with a title and a severity.") from error
            if severity in set(Severity):
                texts = (row.get(name) or "" for name in ("summary", "description", "body"))
                given: dict[str, Any] = row.get("labels") or {}
                labels = {name: str(value) for name, value in given.items()}
                body = "\n".join(filter(None, map(str, texts)))
                service = str(row.get("service") or "")
                at = AT + timedelta(minutes=number)
                yield PastIncident(f"I-{number}", title, body, service, Severity(severity), at, "", labels=labels)


def _key(incident: PastIncident) -> str:
    return " ".join(_WORD.findall(f"{incident.title} {incident.description}".casefold()))


def _most_frequent(incidents: Sequence[PastIncident]) -> Severity | None:
    counted = Counter(incident.severity for incident in incidents)
    return counted.most_common(1)[0][0] if counted else None
