"""Why a build failed, as a cause: the lines of its log that explain it, from the form of the lines and from history."""

from __future__ import annotations

from collections.abc import Iterable

from core.model.incident import Evidence, EvidenceKind, Hypothesis
from core.model.trajectory import Responsibility
from core.ports import FailedBuild
from core.rca.build_log import NAMES, ReadLog, plain
from core.rca.failing_lines import Line, by_form, failing_segments
from core.rca.failure_history import FailureHistory
from core.rca.failures import decisiveness, responsibility_of
from core.rca.tool_outputs.clues import cut, said

BUILD_SCORE = 0.9  # of the lines that explain a failed build, for an incident that is about that build
MAX_QUOTED = 6  # lines shown
LEAST_LINES = 3  # of a text that is taken for a build log
_EXIT = NAMES.index("exit_code")
_COMMAND, _ERROR = NAMES.index("command"), NAMES.index("error")


def build_cause(build: FailedBuild, history: FailureHistory) -> Hypothesis | None:
    """Return the cause with the most telling of the failing lines as evidence; None for a blank log."""
    segments = failing_segments(build.log, history)
    text = build.log.split("\n")
    lines = [Line(number, text[number]) for segment in segments for number in segment]
    ordered = by_form(build.log, lines)
    telling = ordered[:MAX_QUOTED]
    if not telling:
        return None
    leading = max(ordered, key=lambda line: (decisiveness(_plain(line.text)), -line.number))
    if leading not in telling:
        telling[-1] = leading
    shown = sorted(telling, key=lambda line: line.number)
    spans = " and ".join(f"{segment.start + 1} to {segment.stop}" for segment in segments)
    named = _named(build)
    return Hypothesis(
        cause=f"{named} failed{f' at {build.step}' if build.step else ''}: {said(_plain(leading.text))}.",
        service=build.service,
        score=BUILD_SCORE,
        evidence=tuple(
            Evidence(EvidenceKind.LOG, f"{named}, line {line.number + 1}", cut(_plain(line.text)), build.at, build.url)
            for line in shown
        ),
        disproof="The same lines in the log of a run that passed.",
        next_check=(
            f"Read lines {spans} of the log. If others explain it, say “correct: lines A to B” in this thread."
        ),
        responsibility=responsibility_of(leading.text) or Responsibility.OWN_CODE,
    )


def is_led_by(cause: str, lines: Iterable[str]) -> bool:
    """Return whether one of these lines of the log is the one that the cause of a failed build names."""
    return any(cause.endswith(f": {said(_plain(line))}.") for line in lines if _plain(line))


def is_build_log(text: str) -> bool:
    """Return whether a text looks like what a build server recorded: a command that failed, or an exit code that says so."""
    read = ReadLog(text)
    if len(read.keys) < LEAST_LINES:
        return False
    exits, commands, errors = (bool(read.features[:, column].any()) for column in (_EXIT, _COMMAND, _ERROR))
    return exits or (commands and errors)


def _plain(text: str) -> str:
    """A line as a terminal would show it: no colours or time, and what a carriage return overwrote is gone."""
    return plain(text).rstrip("\r\n").rpartition("\r")[2].strip().removeprefix("##[error]")


def _named(build: FailedBuild) -> str:
    if not build.system:
        return "the pasted build log" if not build.service else f"the pasted build log of {build.service}"
    return f"{build.system} run {build.run} of {build.project}"
