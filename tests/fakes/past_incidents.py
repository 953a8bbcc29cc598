"""A made-up history that is long enough to learn owners from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product

from core.model.alert import Severity
from core.model.findings import PastIncident
from core.model.team import Team

AT = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
WORDS = {"printing": "printer toner paper", "access": "password token login", "network": "switch cable router"}
PLACES = [f"hall{number}" for number in range(40)]
TEAMS = [Team(name, name.title(), f"## We own\n\n{words}\n") for name, words in WORDS.items()]


def past_incidents() -> list[PastIncident]:
    """Every team's words at every place, some of them said twice."""
    told = [
        (f"{word} {verb} in {place}", team)
        for (team, words), place in product(WORDS.items(), PLACES)
        for word, verb in zip(words.split(), ("broken", "lost", "slow"), strict=True)
    ]
    return [
        PastIncident(f"I-{number}", title, "", "", Severity.WARNING, AT + timedelta(minutes=number), owner)
        for number, (title, owner) in enumerate([*told, *told[:30]])
    ]
