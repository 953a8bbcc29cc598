"""A failed build that was told to people, and what they said of it: what the next failure of its project is read by."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from core.model.conversation import Place
from core.rca.failure_history import FailureHistory, PastFailure

_LINES = re.compile(
    r"\s*lines?\s+(?P<first>\d{1,9})(?:\s*(?:-|–|—|to|until|through)\s*(?:line\s+)?(?P<last>\d{1,9}))?\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class RecordedFailure:
    """`id` is that of the prediction, `place` where the question was asked, None for an incident that was posted.

    `log` holds no names, addresses or secrets; `first` and `last` are numbers of lines of it, from 0, both inclusive.
    `confirmed_by` is empty until a person said that these are the lines.
    """

    id: str
    project: str
    log: str
    first: int
    last: int
    found_at: datetime
    place: Place | None = None
    confirmed_by: str = ""

    @property
    def lines(self) -> range:
        return range(self.first, self.last + 1)


def history_of(failures: Iterable[RecordedFailure]) -> FailureHistory:
    """What confirmed failures teach; one whose lines are blank teaches nothing."""
    known: list[PastFailure] = []
    for failure in failures:
        try:
            known.append(PastFailure(failure.log, failure.lines))
        except ValueError:
            continue
    return FailureHistory(known)


def named_lines(text: str) -> range | None:
    """The lines that a correction names, “lines 12 to 14” as range(11, 14); None if it begins with none."""
    found = _LINES.match(text)
    if found is None:
        return None
    first, last = int(found["first"]), int(found["last"] or found["first"])
    return range(first - 1, last) if 0 < first <= last else None


def corrected(failure: RecordedFailure, lines: range, person: str) -> RecordedFailure | None:
    """The failure with other lines, confirmed by who named them; None if the log has no such lines."""
    held = failure.log.split("\n")
    if not lines or lines.stop > len(held) or not any(line.strip() for line in held[lines.start : lines.stop]):
        return None
    return replace(failure, first=lines.start, last=lines.stop - 1, confirmed_by=person)
