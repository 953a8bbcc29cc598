"""A history in which every incident is told in words of its own: only who knows what they mean finds the owner."""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from core.model.alert import Severity
from core.model.findings import PastIncident
from tests.fakes.past_incidents import AT, TEAMS

LENGTH = 8  # letters of a word
HISTORY = 330
STRANGE = 30  # words that no past incident has


def _words() -> list[str]:
    letters = np.random.default_rng(3).choice(list("abcdefghijklmnopqrstuvwxyz"), (HISTORY + STRANGE, LENGTH))
    return ["".join(row) for row in letters]


OWNERS = (0, 0, 0, 1, 1, 2)  # in turn, places in TEAMS: no two have as many incidents

SENSES = {word: OWNERS[number % len(OWNERS)] for number, word in enumerate(_words())}
"""Every word → the place in TEAMS of the team that it belongs to."""

STRANGE_WORDS = list(SENSES)[HISTORY:]


def puzzles() -> list[PastIncident]:
    return [
        PastIncident(f"P-{number}", word, "", "", Severity.WARNING, AT + timedelta(minutes=number), TEAMS[team].id)
        for number, (word, team) in enumerate(list(SENSES.items())[:HISTORY])
    ]
