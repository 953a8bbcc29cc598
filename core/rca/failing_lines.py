"""Find the lines of a build log that explain its failure, also by the confirmed failures of the repository's builds.

A build log repeats itself from run to run, so a line is recognised by its text without digits, otherwise by its
beginning. Each confirmed failure shows which lines were part of it, where it began and ended, and between which lines
it was (the idea of extraction by example, Brandt et al., “LogChunks”, MSR 2020).

If the marks of the build server name the failed step, only that step is searched. Every line has log-odds of being
inside the run, of opening it and of closing it. Their sum over a run is its score, and the best run is found in one
pass. The odds come from the features of the lines, and from the repository's confirmed failures if there are any. The
weights are those of a segment model with a softmax over all runs (semi-Markov conditional random field, Sarawagi and
Cohen, NIPS 2004), ridge-penalised, with equal weight for each tool. `python -m tests.benchmarks failing-line-weights`
fits them to builds of small projects that were made to fail, with 43 compilers, test runners and package managers, and
without any log of a real repository.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.model.badge import RecordedFailure
from core.model.findings import Evidence, EvidenceKind, Hypothesis
from core.model.language_model import Responsibility
from core.ports import FailedBuild
from core.rca.build_log import ENDED, NAMES, TO_DO, BuildEnd, End, ReadLog, build_end, plain
from core.rca.failures import FITTED, decisiveness, responsibility_of
from core.rca.log_lines import cut, statement_of

BEGINNING = 10  # bytes that similar lines have in common
USUAL = 1e-3  # prior share of lines at which a failure begins or ends
EXACT_PRIOR, ALIKE_PRIOR = 0.5, 1.0  # weight of the less exact evidence about a line's role, in failures
BOUNDARY_PRIOR = 0.5  # weight of the less exact evidence about a boundary, in lines
MAX_ODDS = 4.0  # log-odds of a single line, either way

_SEEN, _INSIDE, _LINES, _FIRST, _BEFORE, _LAST, _AFTER = range(7)


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
        counts = [[0.0] * (_AFTER + 1)]
        for table in tables:
            for key, row in table.items():
                number = self._row_of.setdefault(key, len(counts))
                if number == len(counts):
                    counts.append([0.0] * (_AFTER + 1))
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
    if (match := _NAMED_LINES.match(text)) is None:
        return None
    first, last = int(match["first"]), int(match["last"] or match["first"])
    return range(first - 1, last) if 0 < first <= last else None


def corrected(failure: RecordedFailure, lines: range, person: str) -> RecordedFailure | None:
    """Return the failure with other lines, confirmed by `person`; None if the log has no such lines or they are blank."""
    held = failure.log.split("\n")
    if not lines or lines.stop > len(held) or not any(line.strip() for line in held[lines.start : lines.stop]):
        return None
    return replace(failure, first=lines.start, last=lines.stop - 1, confirmed_by=person)


_WEIGHTS = np.array([FITTED["failing_lines"][name] for name in NAMES], np.float32)
NO_HISTORY = FailureHistory()
MAX_SEGMENTS = 3  # runs of lines that explain one failure
SHARE = 0.5  # of the best segment's score, for another one to be shown
STEP_ODDS = 2.0  # log-odds by which lines outside of the failed steps must be better than those inside
APART = 3  # rows between two segments
LONGEST = 100  # rows of a segment, unless confirmed failures tell
ROW, FROM_END, PASSED = (
    0.07,
    0.3,
    2.0,
)  # log-odds against a row, against rows after it (by logarithm), and if it also passed


@dataclass(frozen=True, slots=True)
class BuildLine:
    """A line of a log, verbatim, numbered from 0. Untrusted."""

    number: int
    text: str


def failing_lines(log: str, history: FailureHistory = NO_HISTORY) -> list[BuildLine]:
    """Return the lines of all segments that explain the failure, in ascending order; empty for a blank log."""
    lines = log.split("\n")
    numbers = sorted(number for segment in failing_segments(log, history) for number in segment)
    return [BuildLine(number, lines[number]) for number in numbers]


def failing_range(log: str, history: FailureHistory = NO_HISTORY) -> range:
    """Return the numbers of the lines of the most probable segment."""
    return next(iter(failing_segments(log, history, most=1)), range(0))


def failing_segments(log: str, history: FailureHistory = NO_HISTORY, most: int = MAX_SEGMENTS) -> list[range]:
    """Return at most `most` runs of lines that explain the failure, the most probable first; empty for a blank log.

    Only the failed steps are searched, unless other lines are far more probable. If people confirmed earlier failures,
    those decide instead, and there is only one segment.
    """
    read = ReadLog(log)
    if not read.keys:
        return []
    inside, first, before, last, after = (read.features @ _WEIGHTS).T.astype(np.float64)
    first[1:] += before[:-1]
    last[:-1] += after[1:]
    everything = [range(len(read.keys))]
    places = [step for step in read.steps if step] or everything
    longest = LONGEST
    if history:
        places, longest = everything, len(read.keys)
        inside, opens, closes = history.odds(read.keys, inside)
        first, last, most = first + opens, last + closes, 1
    else:
        inside -= ROW + PASSED * _passed(read)
        for place in places:
            last[place.start : place.stop] -= FROM_END * np.log1p(np.arange(len(place))[::-1])
    anywhere = _best_run(everything[0], inside, first, last, longest)
    if anywhere[0] > STEP_ODDS + max(_best_run(place, inside, first, last, longest)[0] for place in places):
        places = everything
    runs: list[tuple[float, range]] = []
    while places and len(runs) < most:
        scored = [_best_run(place, inside, first, last, longest) for place in places]
        score, run = max(scored, key=lambda each: each[0])
        if runs and (score <= 0 or score < SHARE * runs[0][0]):
            break
        runs.append((score, run))
        place = places.pop(scored.index((score, run)))
        places += [
            rest for rest in (range(place.start, run.start - APART), range(run.stop + APART, place.stop)) if rest
        ]
    numbers = read.numbers.tolist()
    return [range(numbers[run.start], numbers[run.stop - 1] + 1) for _, run in runs]


def _passed(read: ReadLog) -> NDArray[np.bool_]:
    """Return a mask of the rows that also stand before the first failed step, where nothing had failed yet."""
    start = min((step.start for step in read.steps), default=len(read.keys))
    passed = {key.strip() for key in read.keys[:start]}
    return np.array([number >= start and key.strip() in passed for number, key in enumerate(read.keys)])


def _best_run(
    place: range, inside: NDArray[np.float64], first: NDArray[np.float64], last: NDArray[np.float64], longest: int
) -> tuple[float, range]:
    """Return the run of at most `longest` rows within `place` with the highest score."""
    rows = slice(place.start, place.stop)
    total = np.cumsum(inside[rows])
    opened = first[rows] - (total - inside[rows])
    if len(place) > longest:
        padded = np.concatenate((np.full(longest - 1, -np.inf), opened))
        best = np.lib.stride_tricks.sliding_window_view(padded, longest).max(axis=1)
    else:
        best = np.maximum.accumulate(opened)
    scores = best + total + last[rows]
    end = int(np.argmax(scores))
    begin = max(0, end + 1 - longest)
    start = begin + int(np.argmax(opened[begin : end + 1]))
    return float(scores[end]), range(place.start + start, place.start + end + 1)


BUILD_SCORE = 0.9  # of the cause of a failed build, for an incident about that build
MAX_QUOTED = 6  # lines shown
VERDICT = 0.1  # decisiveness up to which a line says hardly more than that something failed
SEARCHED = 400  # rows at the end of the failed steps, of which the most decisive lines are shown
LEAST_LINES = 3  # of a text that is recognised as a build log
_STEP_OF_IMAGE = re.compile(r"^#\d{1,4} (?:\d{1,6}\.\d{1,4} )?")  # of BuildKit: its number, and seconds since it began
_NO_DIGITS = dict.fromkeys(map(ord, "0123456789"))
_EXIT = NAMES.index("exit_code")
_COMMAND, _ERROR = NAMES.index("command"), NAMES.index("error")


def build_cause(build: FailedBuild, history: FailureHistory) -> Hypothesis | None:
    """Return the cause, with the most decisive lines as evidence; None for a blank log.

    They are one of each segment, and those at the end of the failed steps. If the log does not tell the failure, the cause is
    how the build ended instead.
    """
    if how := end_of(build, history):
        return _end_cause(build, how)
    segments = failing_segments(build.log, history)
    if not segments:
        return None
    text, inside = build.log.split("\n"), [number for segment in segments for number in segment]
    read = ReadLog(build.log)
    rows = [] if history else [row for step in read.steps for row in step] or range(len(read.keys))
    end = [int(read.numbers[row]) for row in rows[-SEARCHED:]]
    # Of the command before the failed one, because a job may go on after it.
    commands = [0, *np.flatnonzero(read.features[: max(rows[0] - 1, 0) if rows else 0, _COMMAND]).tolist()]
    before: list[int] = read.numbers[commands[-1] : rows[0] if rows else 0].tolist()
    decisive = {number: decisiveness(_plain(text[number])) for number in {*inside, *end, *before}}

    def rank(number: int) -> tuple[float, int]:
        return decisive[number], -number

    leaders = [max(segment, key=rank) for segment in segments]
    candidates = next(
        filter(None, ([each for each in pool if decisive[each] > VERDICT] for pool in (leaders, end, before))),
        [*leaders, *end],
    )
    leading = BuildLine(best := max(candidates, key=rank), text[best])
    stated = (number for number in sorted(end, key=rank, reverse=True) if decisive[number] > VERDICT)
    distinct: dict[str, BuildLine] = {}
    for number in (best, *leaders, *stated, *inside):
        if plainly := _plain(text[number]):
            distinct.setdefault(plainly.translate(_NO_DIGITS), BuildLine(number, text[number]))
    shown = sorted(list(distinct.values())[:MAX_QUOTED], key=lambda line: line.number)
    spans = " and ".join(f"{segment.start + 1} to {segment.stop}" for segment in segments)
    named = _named(build)
    return Hypothesis(
        cause=f"{named} failed{f' at {build.step}' if build.step else ''}: {statement_of(_plain(leading.text))}.",
        service=build.service,
        score=BUILD_SCORE,
        evidence=tuple(
            Evidence(EvidenceKind.LOG, f"{named}, line {line.number + 1}", cut(_plain(line.text)), build.at, build.url)
            for line in shown
        ),
        disproof="The same lines in the log of a run that passed.",
        next_check=f"Read lines {spans} of the log. "
        "If other lines explain the failure, write “correct: lines A to B” in this thread.",
        responsibility=responsibility_of(leading.text) or Responsibility.OWN_CODE,
    )


def end_of(build: FailedBuild, history: FailureHistory) -> BuildEnd | None:
    """Return how a build ended whose log does not tell why it failed; None if it does, by what people confirmed too."""
    end = build_end(build.log, build.stated)
    return None if end is not None and end.end is End.NO_VERDICT and history else end


def _end_cause(build: FailedBuild, end: BuildEnd) -> Hypothesis:
    named, (place, next_check) = _named(build), TO_DO[end.end]
    message = "" if end.end is End.NO_VERDICT else f": {statement_of(end.text).rstrip('.')}"
    source = f"{named}, {'as the server states' if end.number is None else f'line {end.number + 1}'}"
    return Hypothesis(
        cause=f"{named}{f' ({build.step})' if build.step else ''} {end.end}{message}.",
        service=build.service,
        score=BUILD_SCORE,
        evidence=(Evidence(EvidenceKind.LOG, source, cut(end.text), build.at, build.url),),
        disproof="A step of the same run that reports its own failure.",
        next_check=next_check,
        responsibility=place,
    )


def is_led_by(cause: str, lines: Iterable[str]) -> bool:
    """Return whether the cause of a failed build quotes one of these lines of the log."""
    return any(cause.endswith(f": {statement_of(_plain(line))}.") for line in lines if _plain(line))


def is_build_log(text: str) -> bool:
    """Return whether a text looks like a build log: it has an exit code, or a command and an error or a runner's message."""
    read = ReadLog(text)
    if len(read.keys) < LEAST_LINES:
        return False
    exits, commands, errors = (bool(read.features[:, column].any()) for column in (_EXIT, _COMMAND, _ERROR))
    return exits or (commands and (errors or ((end := build_end(text)) is not None and end.end in ENDED)))


def _plain(text: str) -> str:
    """Return a line as a terminal would show it, without colours, time and text overwritten by a carriage return."""
    shown = plain(text).rstrip("\r\n").rpartition("\r")[2].strip().removeprefix("##[error]")
    return _STEP_OF_IMAGE.sub("", shown)


def _named(build: FailedBuild) -> str:
    pasted = f"the pasted build log of {build.service}".removesuffix(" of ")
    return f"{build.system} run {build.run} of {build.project}" if build.system else pasted
