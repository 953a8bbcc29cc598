"""Write invented incidents with known causes: `python -m tests.evaluation.generate_incidents OUT --n 500 --seed 1`.

Each is a folder of its own in the formats that the file tools read, for `python -m tests.benchmarks incidents --cases OUT`:
`alert.json` (an Alertmanager webhook), `changes.jsonl`, `logs/`, `metrics/`, `traces/`, `dependencies.json` in some, and
`truth.json`, which nobody but the evaluation reads.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from tests.evaluation.incident_decoys import deceive
from tests.evaluation.incident_faults import DEVELOPED_ON, FAULTS, distract
from tests.evaluation.incident_world import invented, thinned, written

EPOCH = datetime(2026, 3, 2, 6, tzinfo=UTC)
ALERTS = (
    ("{service}HighErrorRate", "Error rate of {service} is above its objective"),
    ("HighLatency", "p95 latency of {service} is above 1 s for 2 minutes"),
    ("{service} SLO burn", "{service} burns its error budget 14 times too fast"),
    ("RequestsFailing", "Customers report that {service} does not work"),
)


def generate(folder: Path, count: int, seed: int, *, thin: bool = False) -> None:
    """Write `count` incidents below a folder, every class about equally often; `thin` ones hold little of each kind."""
    names = list(FAULTS)
    for number in range(count):
        name = names[number % len(names)]
        _generate(folder / f"incident-{number:04d}", name, np.random.default_rng([seed, number]), thin=thin)


def _generate(folder: Path, name: str, random: np.random.Generator, *, thin: bool) -> None:
    first = -240 if name == "slow_leak" or random.random() < 0.2 else -150
    world = invented(random, first)
    onset = -world.between(1, 9)
    truth = FAULTS[name](world, onset)
    distract(world, truth, onset)
    deceive(world, truth, onset)
    if thin:
        thinned(world)
    start = EPOCH + timedelta(minutes=int(random.integers(60 * 24 * 100)))
    title, summary = ALERTS[int(random.integers(len(ALERTS)))]
    alert = {
        "name": title.format(service="".join(part.capitalize() for part in truth.alerting.split("-"))),
        "service": truth.alerting,
        "summary": summary.format(service=truth.alerting),
    }
    known: dict[str, object] = {
        "class": name,
        "developed_on": name in DEVELOPED_ON,
        "culprits": truth.culprits,
        "category": truth.category,
        "subject": truth.subject,
        "decoys": truth.decoys,
        "first_failing": truth.first_failing,
        "onset": f"{start + timedelta(minutes=onset):%Y-%m-%dT%H:%M:%SZ}",
    }
    written(world, folder, start, alert, known)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--thin", action="store_true", help="little of each kind, as if copied by hand")
    given = parser.parse_args()
    generate(given.folder, given.n, given.seed, thin=given.thin)


if __name__ == "__main__":
    main()
