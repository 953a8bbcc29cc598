"""The confirmed failures of a repository's builds, and the odds that they give a line of the next one.

A build log repeats itself from run to run, so a line is recognised by its text without digits, otherwise by its
beginning. Each confirmed failure shows which lines were part of it, where it began and ended, and between which lines
it was (the idea of extraction by example, Brandt et al., “LogChunks”, MSR 2020).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from core.model.prediction import RecordedFailure
from core.rca.build_log import ReadLog

BEGINNING = 10  # bytes that similar lines have in common
USUAL = 1e-3  # prior share of lines at which a failure begins or ends
EXACT_PRIOR, ALIKE_PRIOR = 0.5, 1.0  # weight of the less exact evidence about a line's role, in failures
BOUNDARY_PRIOR = 0.5  # weight of the less exact evidence about a boundary, in lines
MAX_ODDS = 4.0  # log-odds of a single line, either way

_SEEN, _INSIDE, _LINES, _FIRST, _BEFORE, _LAST, _AFTER = range(7)
_COLUMNS = 7


class PastFailure:
    """A build log with the lines, numbered from 0, that people confirmed as its failure.

    Raises ValueError if none of the lines is in the log.
    """

    __slots__ = ("alike", "exact")

    def __init__(self, log: str, lines: range) -> None:
        read = ReadLog(log)
        first, end = np.searchsorted(read.numbers, [lines.start, lines.stop])
        if first == end:
            raise ValueError(f"Lines {lines.start} to {lines.stop} are not in the log: confirm lines that it has.")
        self.exact = _counts(read.keys, int(first), int(end))
        self.alike = _counts([key[:BEGINNING] for key in read.keys], int(first), int(end))


class FailureHistory:
    """The confirmed failures of one repository; there may be none."""

    __slots__ = ("_alike", "_exact", "_known")

    def __init__(self, failures: Iterable[PastFailure] = ()) -> None:
        past = list(failures)
        self._known = bool(past)
        self._exact = _Table(failure.exact for failure in past)
        self._alike = _Table(failure.alike for failure in past)

    def __bool__(self) -> bool:
        return self._known

    def odds(self, keys: Sequence[bytes], prior: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """Return three log-odds of each line: of being inside the failure, of opening it and of closing it.

        The first are based on the log-odds in `prior`; the others are relative to USUAL.
        """
        exact, alike = self._exact.rows(keys), self._alike.rows([key[:BEGINNING] for key in keys])
        share = 1 / (1 + np.exp(-np.clip(prior, -MAX_ODDS, MAX_ODDS)))
        share = (alike[_INSIDE] + ALIKE_PRIOR * share) / (alike[_SEEN] + ALIKE_PRIOR)
        share = (exact[_INSIDE] + EXACT_PRIOR * share) / (exact[_SEEN] + EXACT_PRIOR)
        inside = np.clip(np.log(share / (1 - share)), -MAX_ODDS, MAX_ODDS)
        first, before, last, after = (_rate(exact, alike, column) for column in (_FIRST, _BEFORE, _LAST, _AFTER))
        first[1:] += before[:-1]
        last[:-1] += after[1:]
        return inside, first, last


class _Table:
    """The summed counts of several failures, with a row for each line text; row 0 is for unknown texts."""

    __slots__ = ("_counts", "_row_of")

    def __init__(self, tables: Iterable[Mapping[bytes, tuple[float, ...]]]) -> None:
        self._row_of: dict[bytes, int] = {}
        counts = [[0.0] * _COLUMNS]
        for table in tables:
            for key, row in table.items():
                number = self._row_of.setdefault(key, len(counts))
                if number == len(counts):
                    counts.append([0.0] * _COLUMNS)
                counts[number] = [old + new for old, new in zip(counts[number], row, strict=True)]
        self._counts = np.array(counts).T

    def rows(self, keys: Sequence[bytes]) -> NDArray[np.float64]:
        """Return a column of counts for each key."""
        find = self._row_of.get
        return self._counts[:, np.array([find(key, 0) for key in keys], np.intp)]


def _counts(keys: Sequence[bytes], first: int, end: int) -> Mapping[bytes, tuple[float, ...]]:
    lines, inside = Counter(keys), Counter(keys[first:end])
    before, after = keys[first - 1 : first] if first else (), keys[end : end + 1]
    return {
        key: (
            1.0,
            inside[key] / count,
            float(count),
            float(key == keys[first]),
            float(key in before),
            float(key == keys[end - 1]),
            float(key in after),
        )
        for key, count in lines.items()
    }


def _rate(exact: NDArray[np.float64], alike: NDArray[np.float64], column: int) -> NDArray[np.float64]:
    share = (alike[column] + BOUNDARY_PRIOR * USUAL) / (alike[_LINES] + BOUNDARY_PRIOR)
    share = (exact[column] + BOUNDARY_PRIOR * share) / (exact[_LINES] + BOUNDARY_PRIOR)
    return np.log(share / USUAL)


_NAMED_LINES = re.compile(
    r"\s*lines?\s+(?P<first>\d{1,9})(?:\s*(?:-|–|—|to|until|through)\s*(?:line\s+)?(?P<last>\d{1,9}))?\b", re.IGNORECASE
)


def history_of(failures: Iterable[RecordedFailure]) -> FailureHistory:
    """Return the history of confirmed failures, without those whose lines are blank."""
    past: list[PastFailure] = []
    for failure in failures:
        try:
            past.append(PastFailure(failure.log, failure.lines))
        except ValueError:
            continue
    return FailureHistory(past)


def named_lines(text: str) -> range | None:
    """Return the lines that a correction names: range(11, 14) for “lines 12 to 14”; None if it begins with no lines."""
    match = _NAMED_LINES.match(text)
    if match is None:
        return None
    first, last = int(match["first"]), int(match["last"] or match["first"])
    return range(first - 1, last) if 0 < first <= last else None


def corrected(failure: RecordedFailure, lines: range, person: str) -> RecordedFailure | None:
    """Return the failure with other lines, confirmed by `person`; None if the log has no such lines or they are blank."""
    held = failure.log.split("\n")
    if not lines or lines.stop > len(held) or not any(line.strip() for line in held[lines.start : lines.stop]):
        return None
    return replace(failure, first=lines.start, last=lines.stop - 1, confirmed_by=person)
