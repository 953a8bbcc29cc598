"""Why a build failed, as a cause: the lines of its log that explain it, from the form of the lines and from history."""

from __future__ import annotations

from collections.abc import Iterable

from core.incident import Evidence, EvidenceKind, Hypothesis
from core.ports import FailedBuild
from core.rca.failing_lines import Line, by_form, failing_lines
from core.rca.failure_history import FailureHistory
from core.rca.failures import responsibility_of
from core.rca.line_features import NAMES, ReadLog
from core.rca.tool_outputs.clue import cut
from core.rca.tool_outputs.logs import ANSI, said
from core.rca.tool_outputs.trouble import trouble
from core.rca.trajectory import Responsibility

BUILD_SCORE = 0.9  # of the lines that explain a failed build, for an incident that is about that build
MAX_QUOTED = 6  # lines shown
LEAST_LINES = 3  # of a text that is taken for a build log
_EXIT = NAMES.index("exit_code")
_COMMAND, _ERROR = NAMES.index("command"), NAMES.index("error")


def build_cause(build: FailedBuild, history: FailureHistory) -> Hypothesis | None:
    """The cause with the most telling of the failing lines as evidence; None for a blank log."""
    lines = failing_lines(build.log, history)
    telling = by_form(build.log, lines)[:MAX_QUOTED]
    if not telling:
        return None
    shown = sorted(telling, key=lambda line: line.number)
    leading = max(telling, key=lambda line: _strength(line.text))
    return Hypothesis(
        cause=f"{_named(build)} failed{f' at {build.step}' if build.step else ''}: {said(_plain(leading.text))}.",
        service=build.service,
        score=BUILD_SCORE,
        evidence=tuple(
            Evidence(EvidenceKind.LOG, f"{_named(build)}, line {line.number + 1}", _quoted(line), build.at, build.url)
            for line in shown
        ),
        disproof="The same lines in the log of a run that passed.",
        next_check=(
            f"Read lines {lines[0].number + 1} to {lines[-1].number + 1} of the log. If others explain it, say "
            "“correct: lines A to B” in this thread."
        ),
        responsibility=responsibility_of(leading.text) or Responsibility.OWN_CODE,
    )


def is_led_by(cause: str, lines: Iterable[str]) -> bool:
    """Whether one of these lines of the log is the one that the cause of a failed build names."""
    return any(cause.endswith(f": {said(_plain(line))}.") for line in lines if _plain(line))


def is_build_log(text: str) -> bool:
    """Whether a text looks like what a build server recorded: a command that failed, or an exit code that says so."""
    read = ReadLog(text)
    if len(read.keys) < LEAST_LINES:
        return False
    exits, commands, errors = (bool(read.features[:, column].any()) for column in (_EXIT, _COMMAND, _ERROR))
    return exits or (commands and errors)


def _strength(text: str) -> float:
    found = trouble(_plain(text))
    return found.strength if found else 0.0


def _quoted(line: Line) -> str:
    return cut(_plain(line.text))


def _plain(text: str) -> str:
    """A line as a terminal would show it: no colours, and what a carriage return overwrote is gone."""
    return ANSI.sub("", text.rstrip("\r\n").rpartition("\r")[2]).strip()


def _named(build: FailedBuild) -> str:
    if not build.system:
        return "the pasted build log" if not build.service else f"the pasted build log of {build.service}"
    return f"{build.system} run {build.run} of {build.project}"
