"""Generated incidents in which the severity misleads: alerts that flap, storms, slow burns, and a mixture.

    python -m tests.benchmarks page-scenarios [NAME …] [--incidents N] [--seed S]

Each world is a company in its first days with Plumbline, so that little is known of any alert. Whether an incident
needed a person is drawn; the shares are assumptions, stated here, and not measured anywhere.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from rich.console import Console

from core.model.alert import Severity
from core.triage.paging import Episode
from tests.benchmarks import pages

BEGINS = datetime(2026, 1, 5, tzinfo=UTC)
CRITICAL, WARNING, INFO = Severity
SEEDS = 10_000  # worlds of one seed before those of the next
DAY = 24 * 60.0  # minutes


@dataclass(slots=True)
class World:
    """A company's incidents, drawn from a seed."""

    seed: str
    days: float = 6.0
    made: list[Episode] = field(default_factory=list[Episode])
    draw: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)

    def at_any_time(self) -> float:
        return self.draw.uniform(0, self.days * DAY)

    def service(self) -> str:
        return f"service-{self.draw.randint(1, 12)}"

    def happen(
        self,
        alert: str,
        service: str,
        severity: Severity,
        minute: float,
        need: float,
        lasts: float,
        *,
        again: int = 0,
        excess: tuple[float, float] | None = None,
        has_parent: bool = False,
        deploying: bool = False,
    ) -> None:
        """Add an incident that needs a person with probability `need`, else ends after about `lasts` minutes."""
        at, draw = BEGINS + timedelta(minutes=minute), self.draw
        needed = draw.random() < need
        span = timedelta(minutes=(60 if needed else lasts) * draw.lognormvariate(0, 0.5))
        self.made.append(
            Episode(
                f"{self.seed}-{len(self.made)}",
                alert,
                service,
                severity,
                at,
                at + span,
                needed,
                deploying,
                has_parent,
                tuple(at + span * (number + 1) / (again + 1) for number in range(again)),
                draw.uniform(*excess)
                if excess and draw.random() < 0.5
                else None,  # half of the alerts state their value
            )
        )

    def background(self, count: int) -> None:
        """Add faults and noise as they happen everywhere."""
        for _ in range(count):
            minute, service = self.at_any_time(), self.service()
            if self.draw.random() < 0.4:
                severity = self.draw.choice([CRITICAL, CRITICAL, WARNING])
                self.happen(f"fault-{self.draw.randint(1, 3)}", service, severity, minute, 0.8, 20, excess=(1.2, 4))
            else:
                severity = self.draw.choice([CRITICAL, WARNING, WARNING, INFO])
                self.happen("noise", service, severity, minute, 0.12, 8, excess=(1.0, 1.5))


def flapping(world: World) -> None:
    """Alerts that fire and end again and again, of which few turn into something; some of them are critical."""
    for number in range(8):
        service, severity = f"service-{number}", world.draw.choice([CRITICAL, WARNING, WARNING])
        real = world.draw.random() < 0.15
        for _ in range(world.draw.randint(6, 14)):
            need = 0.6 if real else 0.03
            again = world.draw.randint(0, 4)
            world.happen("flaps", service, severity, world.at_any_time(), need, 6, again=again, excess=(1.0, 1.3))
    world.background(30)


def storm(world: World) -> None:
    """One fault at the bottom, often only a warning, whose victims raise critical alerts that need nobody else."""
    for _ in range(7):
        minute = world.at_any_time()
        cause = world.draw.choice([CRITICAL, WARNING, WARNING])
        world.happen(f"cause-{world.draw.randint(1, 4)}", world.service(), cause, minute, 0.92, 30, excess=(2, 6))
        for _ in range(world.draw.randint(4, 14)):
            severity = world.draw.choice([CRITICAL, CRITICAL, WARNING])
            has_parent = world.draw.random() < 0.5
            later = minute + world.draw.uniform(0.2, 8)
            world.happen("errors", world.service(), severity, later, 0.04, 25, has_parent=has_parent, excess=(1, 3))
    world.background(40)


def slow_burn(world: World) -> None:
    """Rare quiet warnings of what fills up or grows, which need a person; and loud short peaks, which do not."""
    for number in range(24):
        severity = world.draw.choice([WARNING, WARNING, INFO])
        world.happen(f"fills-{number}", world.service(), severity, world.at_any_time(), 0.75, 300, excess=(1.0, 1.4))
    for number in range(6):
        severity = world.draw.choice([CRITICAL, WARNING])
        for _ in range(world.draw.randint(4, 12)):
            world.happen("peak", f"service-{number}", severity, world.at_any_time(), 0.05, 4, excess=(1.0, 2.0))
    world.background(25)


def mixture(world: World) -> None:
    """Faults, noise, and restarts during deployments, which end by themselves."""
    for _ in range(25):
        minute = world.at_any_time()
        world.happen("restarting", world.service(), WARNING, minute, 0.1, 5, deploying=True)
    for _ in range(6):
        world.happen("restarting", world.service(), WARNING, world.at_any_time(), 0.6, 15)
    world.background(80)


SCENARIOS: dict[str, Callable[[World], None]] = {
    "flapping": flapping,
    "storm": storm,
    "slow-burn": slow_burn,
    "mixture": mixture,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Judge generated incidents as on the first day.")
    parser.add_argument("names", nargs="*", metavar="NAME", default=list(SCENARIOS))
    parser.add_argument("--incidents", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for name in given.names:
        figures = first_days(name, given.incidents, given.seed)
        print(f"\n{name}")
        pages.print_table(figures, Console())


def first_days(name: str, count: int, seed: int, hold_below: float = 0.05) -> dict[str, Any]:
    """Return the figures of all judgements in worlds of a scenario, where nothing was learned."""
    judged = [each for made in worlds(name, count, seed) for each in pages.judge(made, hold_below, cold=True)]
    return pages.summarised(judged, hold_below)[0]


def world(name: str, seed: int) -> list[Episode]:
    """Return the incidents of one world of a scenario."""
    made = World(f"{name}-{seed}")
    SCENARIOS[name](made)
    return made.made


def worlds(name: str, count: int, seed: int) -> list[list[Episode]]:
    """Return worlds of a scenario with at least `count` incidents in all."""
    made: list[list[Episode]] = []
    while sum(map(len, made)) < count:
        made.append(world(name, seed * SEEDS + len(made)))
    return made
