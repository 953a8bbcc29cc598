"""Parse a build log: remove the marks of build servers, find the failed steps, and read how the build ended.

The marks of GitHub Actions, Azure Pipelines, GitLab CI and Jenkins are known: times, colours, and the start and failure
of steps. The words behind the features are common to compilers, test runners and package managers. Because a log is
large, it is read as bytes, and each distinct text is read only once.

What the build server itself states comes first. In a bare log, a message of the runner is stated_ends from the output of a step by
its place: after it come only the runner's own lines, and no command next to it reports how it ended.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from core.model.language_model import Responsibility
from core.model.log_levels import without_control
from core.rca.failures import OUTCOME, decisiveness

_ERASED = re.compile(r"^(?![^\n]*section_(?:start|end):)[^\n]*\r\x1b\[[02]?K", re.MULTILINE)  # but marks of GitLab
_TIME = re.compile(
    r"^\ufeff?(?:[^\t\n]{1,120}\t[^\t\n]{1,120}\t\ufeff?(?=\d{4}-))?"  # the job and step of `gh run view --log`
    r"(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?(?: \d\d[OE][ +]?)?(?: |$)"
    r"|\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?(?: {1,2}|$))?",
    re.MULTILINE,
)
"""The time before a line; GitLab adds the stream that the line came from."""
_FAILED_COMMAND = re.compile(r"(?:##\[error\]|Error: ).{0,80}(?:completed with exit|exited with) code '?-?[1-9]")
OF_RUNNER = re.compile(  # a line that a runner writes itself
    r"^(?:##\[|\[Pipeline\]|\[command\]|section_(?:start|end)|Finished: |Post job cleanup|Clean(?:ing|ed) up|Build step |Also: "
    r"|Caused(?: by)?: |at [\w.$/]{1,200}\(|\.\.\. \d{1,3} more|ERROR: (?:Job failed|script returned|Connection was)|FATAL: "
    r"|hudson\.|jenkins\.|java\.|org\.jenkins|Uploading |Completed |\^\^\^ |~~~ |Stage \")"
)
_REPEATS = ("ERROR: script returned exit code", "ERROR: Job failed: exit code", "Finished: ", "Setting status of")


def plain(log: str) -> str:
    """Return a log without colours and without the time before each line. It has the same number of lines."""
    return _TIME.sub("", without_control(_ERASED.sub("", log)))


@dataclass(frozen=True, slots=True)
class StepMarks:
    """The marks of a build server: beginnings of a line with which a step begins, and a line that says that the one before failed.

    `is_each` is set if a line says so of each failed step, and not once, and `is_said` if it also says why.
    """

    begins: tuple[str, ...]
    fails: re.Pattern[str]
    is_each: bool = False
    is_said: bool = False


_ACTION = ("##[group]Run ", "##[section]Starting: ", "Run ", "Post job cleanup")
SERVERS = (
    StepMarks(
        _ACTION, _FAILED_COMMAND, is_each=True
    ),  # GitHub Actions and Azure Pipelines; from a page without the headers
    StepMarks(_ACTION, re.compile(r"##\[error\]"), is_each=True, is_said=True),
    StepMarks(  # GitLab
        ("section_start:", "section_end:", "$ "),
        re.compile(
            r".{0,200}section_start:\d{1,12}:(?:after_script|cleanup|upload_artifacts|archive_cache)|ERROR: Job failed"
        ),
    ),
    StepMarks(  # Jenkins
        ("[Pipeline] ",),
        re.compile(r"\[Pipeline\] (?:\{ \(Declarative: Post A|End of P)|.{0,200}skipped due to earlier failure"),
    ),
)


def failing_steps(lines: Sequence[str]) -> list[range]:
    """Return the line numbers (from 0) of the output of each failed step; empty if no mark names a step.

    `lines` are those of a `plain` log.
    """
    steps = (_failing_steps(lines, marks) for marks in SERVERS)
    return next(filter(None, steps), list[range]())


def _failing_steps(lines: Sequence[str], marks: StepMarks) -> list[range]:
    def has_text(part: range) -> bool:
        return any(lines[number].strip() and not lines[number].startswith(_REPEATS) for number in part)

    steps: list[range] = []
    start, last, in_header, is_mixed = 0, range(0), False, False
    for number, line in enumerate(lines):
        if marks.fails.match(line) and (marks.is_each or not steps):
            step = range(start, number + marks.is_said)
            steps.append(step if has_text(step) else last)
        is_mixed = is_mixed or line.startswith("[Pipeline] { (Branch: ")  # the lines of these are mixed
        if (line.startswith(marks.begins) and not is_mixed) or (in_header and line.startswith("##[endgroup]")):
            last = range(start, number) if has_text(range(start, number)) else last
            start, in_header = number + 1, line.startswith("##[group]")
    of_pipeline = range(start, len(lines)) if start and lines[start - 1] == "[Pipeline] End of Pipeline" else range(0)
    return [step for step in (*steps, of_pipeline) if has_text(step)]


MAX_LINE = 1_000  # bytes read of a line
MAX_INDENT = 63  # columns that are distinguished
NEAR = 2  # lines before and after an error that count as near it
RULE = 4  # characters of a line without letters from which it is a horizontal rule

_PLACE = re.compile(rb"\.[A-Za-z]\w*(?::\d|\(\d)")  # file.ext:12, file.ext(12
_EXIT = re.compile(rb"exit(?:ed)?(?: with)?(?: code| status)?:? [1-9]|marked build as failure")
_DIGITS = b"0123456789"
_WORDS = bytes(code if chr(code).isalpha() else 32 for code in range(128)).lower() + bytes(range(128, 256))

ANYWHERE: Mapping[str, str] = {
    "error": "error errors err fatal failed fails failure failures failing fail exception panic panicked traceback "
    "aborted undefined segfault crashed",
    "complaint": "expected missing invalid unexpected assert assertion cannot unable denied conflict mismatch mismatched "
    "unknown unresolved timeout not couldn could",
    "warning": "warn warning warnings deprecated deprecation",
    "tally": "tests examples specs assertions problems offenses passed passing skipped ran",
    "exit": "exit exited",
}
AT_START: Mapping[str, str] = {
    "opens_error": "error errors err fatal failed failure failures failing fail exception panic traceback caused",
    "compares": "expected actual got want wanted left right e",
    "frame": "at file from",
    "progress": "info debug trace notice downloading downloaded installing installed get fetching fetch unpacking "
    "setting selecting preparing compiling receiving remote using building checking copying creating reading requirement "
    "collecting updating resolving running processing loading generating",
}
AT_END: Mapping[str, str] = {"passes": "ok passed pass done success ✓ ✔"}

NAMES = (
    *ANYWHERE,
    *AT_START,
    *AT_END,
    *"rule marker numbered command indented place exit_code after_exit failing_step gap deeper shallower opens".split(),
    "near_error",
    "any",
)
"""The columns of `features`; `any` is true of every line."""

_BIT = {name: 1 << number for number, name in enumerate(NAMES)}
_INDENT_SHIFT = len(NAMES)


def _bits(classes: Mapping[str, str]) -> dict[bytes, int]:
    bits: dict[bytes, int] = {}
    for name, words in classes.items():
        for word in words.split():
            bits[word.encode()] = bits.get(word.encode(), 0) | _BIT[name]
    return bits


_ANYWHERE, _AT_START, _AT_END = _bits(ANYWHERE), _bits(AT_START), _bits(AT_END)
_COMMANDS = (b"+ ", b"##[group]Run ", b"##[section]Starting: ", b"[command]")
_ERROR_ENDINGS = (b"error", b"exception", b"failure")


class ReadLog:
    """The lines of a log that are not blank, without the times and colours that a build server adds.

    `numbers` are their line numbers, from 0; `keys` their texts without digits; `features` has a row for each, with a
    column of 0 or 1 for each of `NAMES`; `steps` are the rows of each failed step, if marks name steps or
    a command reports that it failed.
    """

    __slots__ = ("features", "keys", "numbers", "steps")

    def __init__(self, text: str) -> None:
        text = plain(text)
        steps = failing_steps(text.split("\n"))
        content = text.encode("utf-8", "replace")
        keys = content.translate(None, _DIGITS).split(b"\n")
        shapes = _Shapes()
        codes = np.array([shapes[key] for key in keys], np.int64)
        breaks = np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n"))
        codes[_lines_with(_PLACE, content, breaks)] |= _BIT["place"]
        exits = _lines_with(_EXIT, content, breaks)
        codes[exits] |= _BIT["exit_code"]
        numbers = np.flatnonzero(codes & _BIT["any"])
        if exits.size:
            codes[exits[0] + 1 :] |= _BIT["after_exit"]
            steps = steps or _failed_commands(codes, exits)
        for step in steps:
            codes[step.start : step.stop] |= _BIT["failing_step"]
        self.steps = [range(*np.searchsorted(numbers, [step.start, step.stop]).tolist()) for step in steps]
        self.numbers: NDArray[np.intp] = numbers
        self.keys: Sequence[bytes] = [keys[number] for number in numbers]
        self.features = _features(codes[numbers], numbers)


class _Shapes(dict[bytes, int]):
    """A map from the text of a line to its code: its own features and its indentation; 0 for a blank line."""

    def __init__(self) -> None:
        super().__init__()
        self._meanings = _Meanings()

    def __missing__(self, key: bytes) -> int:
        code = self[key] = _shape(key[:MAX_LINE], self._meanings)
        return code


class _Meanings(dict[bytes, int]):
    """A map from a word to its classes, independent of its position in a line."""

    def __missing__(self, word: bytes) -> int:
        code = self[word] = _ANYWHERE.get(word, 0) | (_BIT["error"] if word.endswith(_ERROR_ENDINGS) else 0)
        return code


def _shape(key: bytes, meanings: Mapping[bytes, int]) -> int:
    key = key.rstrip()
    key = key[key.rfind(b"\r") + 1 :]  # a carriage return overwrites the text before it
    text = key.lstrip()
    if not text or text.startswith(b"section_"):
        return 0
    indent = min(len(key) - len(text), MAX_INDENT)
    code = _BIT["any"] | indent << _INDENT_SHIFT | (_BIT["indented"] if indent else 0)
    words = text.translate(_WORDS).split()
    if not words:
        return code | _BIT["rule" if len(text) >= RULE else "marker"]
    for word in words:
        code |= meanings[word]
    code |= _AT_START.get(words[0], 0) | _AT_END.get(words[-1], 0)
    first = text[:1]
    if first == b"$" or text.startswith(_COMMANDS):
        code |= _BIT["command"]
    elif first == b")":  # the digits were removed
        code |= _BIT["numbered"]
    elif first in b"+-|^~>":
        code |= _BIT["marker"]
    return code


def _lines_with(pattern: re.Pattern[bytes], content: bytes, breaks: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the lines in which the pattern is found, ascending; `breaks` are the offsets of the line ends."""
    starts = np.fromiter((match.start() for match in pattern.finditer(content)), np.intp)
    return np.unique(np.searchsorted(breaks, starts))


def _failed_commands(codes: NDArray[np.int64], exits: NDArray[np.intp]) -> list[range]:
    """Return the lines between a command and the last line that reports its failure, for each that failed."""
    commands = np.flatnonzero(codes & _BIT["command"])
    before = np.searchsorted(commands, exits) - 1
    ends = {int(commands[place]): int(end) for place, end in zip(before, exits, strict=True) if place >= 0}
    return [range(command + 1, end) for command, end in ends.items()]


def _features(codes: NDArray[np.int64], numbers: NDArray[np.intp]) -> NDArray[np.float32]:
    indents = (codes >> _INDENT_SHIFT) & MAX_INDENT
    step, next_step = np.diff(indents, prepend=0), np.diff(indents, append=0)
    codes = codes | np.where(np.diff(numbers, prepend=-2) > 1, _BIT["gap"], 0)
    codes |= np.where(step > 0, _BIT["deeper"], 0) | np.where(step < 0, _BIT["shallower"], 0)
    codes |= np.where(next_step > 0, _BIT["opens"], 0)
    errors = np.flatnonzero(codes & _BIT["error"])
    for offset in range(-NEAR, NEAR + 1):
        codes[np.clip(errors + offset, 0, len(codes) - 1)] |= _BIT["near_error"]
    return ((codes[:, None] >> np.arange(len(NAMES))) & 1).astype(np.float32)


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
_FINAL = ("##[error]", "##[section]Finishing", "ERROR: Job failed", "Finished: ", "[Pipeline] End", "^^^ ", "🚨")
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
        and not any(text.startswith(_FINAL) or OUTCOME.search(text) or _states_failure(text) for text, _ in end)
    ):
        return BuildEnd(End.NO_VERDICT, *rows[-1])
    return None


def _end_of(text: str, number: int | None = None) -> BuildEnd | None:
    bare = _bare(text)
    return next((BuildEnd(end, bare, number) for end, words in _ENDS.items() if words.search(bare)), None)


def _is_outcome(text: str) -> bool:
    return OUTCOME.search(_bare(text)) is not None and not _KILLED.search(text)


def _states_failure(text: str) -> bool:
    return decisiveness(_bare(text)) >= 0.5


def _bare(text: str) -> str:
    return text.removeprefix("##[error]").removeprefix("##[warning]")


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
