"""Read how a build ended whose log does not tell why: its runner was lost, its log was cut, or somebody stopped it.

What the build server itself states comes first. In a bare log, a message of the runner is stated_ends from the output of a step by
its place: after it come only the runner's own lines, and no command next to it reports how it ended.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from core.model.trajectory import Responsibility
from core.rca.build_log import MAX_LINE, OF_RUNNER, plain
from core.rca.failures import COMPLAINT, OUTCOME, decisiveness


class End(StrEnum):
    """An end of a build, as a predicate of its name. The first ones explain the later ones."""

    RUNNER_LOST = "did not fail in a step: its runner failed or was lost"
    OUT_OF_TIME = "was stopped at its time limit"
    LOG_CUT = "has a log that was cut, and the failure is not in it"
    CANCELLED = "was cancelled"
    NO_VERDICT = "has a log that ends without a verdict"


ENDED = frozenset({End.RUNNER_LOST, End.OUT_OF_TIME, End.LOG_CUT})  # the ways to fail without a failed step
TO_DO: dict[End, tuple[Responsibility | None, str]] = {  # the place of the repair, and the next step
    End.RUNNER_LOST: (
        Responsibility.PLATFORM,
        "Look at the runner and its machine at that time, and run the build again.",
    ),
    End.OUT_OF_TIME: (None, "Compare how long its steps took with a run that passed."),
    End.LOG_CUT: (
        Responsibility.PLATFORM,
        "Raise the limit of the log, or let the build print less, and run it again.",
    ),
    End.CANCELLED: (None, "Find out who or what cancelled it."),
    End.NO_VERDICT: (None, "Read the whole log on the build server, and the state of the run there."),
}
_MACHINE = r"\b(?:runner|agent|worker|executor|node|slave|machine|instance|vm|host|pod|build container|channel)s?\b"
_GONE = (
    r"\b(?:lost|losing|disconnect\w+|stopped hearing|(?:shutdown|termination|stop) signal|shut(?:ting)? down|went \w+|offline"
    r"|removed|deleted|evict\w*|preempt\w*|reclaim\w*|disrupted|interrupt\w*|terminat\w+|unreachable|cannot contact|drained|dead"
    r"|disappear\w*|unregistered|low on resource|not (?:respond\w*|acquired)|no longer|closed|closing|died|unsupported|provisioning)\b"
)
_LOG = r"\b(?:logs?|log ?file|trace|output)\b"
_FULL = r"\b(?:exceed\w*|reached|hit)\b"
_LIMIT = r"\b(?:limit|max\w*|size|length|quota)\b"
_MESSAGES = {  # of runners, and states of build servers
    End.RUNNER_LOST: rf"{_MACHINE}.{{0,120}}{_GONE}|{_GONE}.{{0,120}}{_MACHINE}|^cannot contact |\bspot (?:interrupt|terminat)\w+"
    r"|\blost communication\b|\bClosedChannelException|\bChannelClosedException"
    r"|\b(?:Eviction|Termination|Deletion|Preemption)By[A-Z]|\b(?:system|infrastructure) failure|^abandoned$"
    r"|\bno matching runner|\bstuck or timeout|touching the log file|script returned exit code -[12]\b",
    End.OUT_OF_TIME: r"timeout has been exceeded|due to timeout|build timed out|job execution timeout|^time(?:d )?out$"
    r"|\bexceed\w*\b.{0,40}\btime\b|\bran longer than the maximum time|\bexecution took longer than"
    r"|\bno output\b.{0,40}\b(?:received|exceeded)",
    End.LOG_CUT: rf"{_LOG}.{{0,60}}{_FULL}.{{0,40}}(?:{_LIMIT}|\b\d{{1,9}} ?(?:[KMG]i?B|bytes)\b)|{_LOG}.{{0,20}}{_LIMIT}.{{0,20}}{_FULL}"
    rf"|{_LIMIT}.{{0,30}}{_LOG}.{{0,30}}{_FULL}|(?:{_LOG}|\bstep\b).{{0,30}}\b(?:truncated|clipped|cut|trimmed)\b(?!.{{0,40}}\bhidden\b)"
    rf"|{_LOG}.{{0,20}}\b(?:too (?:large|long|big)|(?:larger|longer|bigger) than)\b"
    r"|\b(?:first|last) [\d,.]{1,12} (?:lines|[KMG]i?B|bytes)\b.{0,40}\b(?:shown|kept|stored|available)\b",
    End.CANCELLED: r"^(?:cancell?ed|aborted)$|^aborted by |cancellation signal"
    r"|^(?:the )?(?:operation|run|job|build) (?:was|has been) (?:cancell?ed|terminated)",
}
_ENDS = {end: re.compile(pattern, re.IGNORECASE) for end, pattern in _MESSAGES.items()}
_MARK = re.compile(r"^##\[(?:error|warning)\]")
_FINAL = re.compile(r"^(?:##\[error\]|##\[section\]Finishing|ERROR: Job failed|Finished: |\[Pipeline\] End|\^\^\^ |🚨)")
_KILLED = re.compile(r"\b1(?:29|30|37|43)\b")  # exit codes of a command that a signal ended
READ = 400  # lines at either end that are read for the end of a build
OTHERS = 5  # lines after a message of the runner that are not its own


@dataclass(frozen=True, slots=True)
class BuildEnd:
    """The end of a build. `text` is the message that says so; `number` its line, from 0, unless the server states it."""

    end: End
    text: str
    number: int | None = None


def build_end(log: str, stated: str = "") -> BuildEnd | None:
    """Return how a build ended; None if a command of it reported its own failure, or nothing is known.

    `stated` is what the build server says of the end, a state or message on each line. Both texts are untrusted.
    """
    states = [line.replace("_", " ").strip() for line in stated.split("\n")]
    shown = (line.rstrip("\r").rpartition("\r")[2].strip()[:MAX_LINE] for line in plain(log).split("\n"))
    rows = [(text, number) for number, text in enumerate(shown) if text]
    is_reported = any(_is_outcome(state) or state == "script failure" for state in states)
    stated_ends = [end for state in states if not is_reported and (end := _end_of(state))]
    messages = [] if is_reported else _last_messages(rows[-READ:])
    if decided := [end for end in stated_ends if end.end is not End.CANCELLED] or [*messages, *stated_ends]:
        best = min(decided, key=lambda end: list(End).index(end.end))
        return next((message for message in messages if message.end is best.end), best)
    near = rows[:READ] + rows[max(READ, len(rows) - READ) :]
    cut = next((row for row in reversed(near) if _ENDS[End.LOG_CUT].search(row[0])), None)
    if cut is not None and not any(_states_failure(text) for text, number in near if number > cut[1]):
        return BuildEnd(End.LOG_CUT, *cut)
    end = reversed(rows[-READ:])
    if (
        rows
        and not is_reported
        and not any(_FINAL.match(text) or OUTCOME.search(text) or _states_failure(text) for text, _ in end)
    ):
        return BuildEnd(End.NO_VERDICT, *rows[-1])
    return None


def _end_of(text: str, number: int | None = None) -> BuildEnd | None:
    bare = _MARK.sub("", text)
    return next((BuildEnd(end, bare, number) for end, words in _ENDS.items() if words.search(bare)), None)


def _is_outcome(text: str) -> bool:
    return OUTCOME.search(_MARK.sub("", text)) is not None and not _KILLED.search(text)


def _states_failure(text: str) -> bool:
    return decisiveness(_MARK.sub("", text)) >= COMPLAINT


def _last_messages(rows: Sequence[tuple[str, int]]) -> list[BuildEnd]:
    """Return the messages of the runner at the end, in order; none if a command reports its failure next to them."""
    messages: list[BuildEnd] = []
    others = 0
    for text, number in reversed(rows):
        if message := _end_of(text, number):
            messages.insert(0, message)
        elif not OF_RUNNER.match(text) or _is_outcome(text):
            others += 1
            if _is_outcome(text):
                return []
            if others > OTHERS or _states_failure(text):
                break
    return messages
