"""Read a pasted log or stack trace: the lines that say what failed are searched for, and not the rest."""

from __future__ import annotations

import re
from dataclasses import dataclass

from core.ports import FailedBuild
from core.rca.build_log import plain
from core.rca.failing_lines import NO_HISTORY, build_cause, is_build_log
from core.rca.failures import decisiveness
from core.rca.log_lines import frames

LEAST_LINES = 4  # of a text that is read as a paste
SEARCHED = 3  # lines that say what failed, the most decisive ones
MAX_LINE = 300  # characters of a line

_CAUSED_BY = re.compile(r"^[^\S\n]*+(?:Caused by:|\[cause\]:|--->) *(?P<what>\S.*)$", re.MULTILINE)
_OTHER_FRAME = re.compile(
    r"^[^\S\n]++at .{1,300} in .{1,300}:line \d+$|^[^\S\n]++from .{1,300}:\d+:in [`']", re.MULTILINE
)  # .NET, Ruby
_RUBY = re.compile(r"^\S{1,300}:\d+:in [`'].{1,200}?': (?P<what>\S.{0,1000})$", re.MULTILINE)
_RAISED = re.compile(
    r"^[^\S\n]*+(?:Exception in thread \"[^\"\n]{1,100}\" |Unhandled exception\. |Uncaught )?"
    r"(?P<what>[A-Za-z_][\w.]{0,200}+(?:(?<=Error)|(?<=Exception)|(?<=Timeout)|(?<=Interrupt)|(?<=Exit)|(?<=Failure))"
    r"(?::? [^\n]{1,1000})?)$",
    re.MULTILINE,
)
_PANIC = re.compile(r"^(?P<what>panic: .{1,1000}|thread '.{1,100}' panicked at .{1,1000})$", re.MULTILINE)
_CHAINED = re.compile(
    r"^(?:The above exception was the direct cause|During handling of the above exception)", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Paste:
    """The lines of a pasted text that say what failed, most decisive first, and the question beside them, which may be empty.

    Untrusted.
    """

    failed: tuple[str, ...]
    asked: str

    @property
    def queries(self) -> tuple[str, ...]:
        """Return what to search for: the most decisive line, and then all of them."""
        return tuple("\n".join(filter(None, (self.asked, *lines))) for lines in (self.failed[:1], self.failed))


def read_paste(text: str) -> Paste | None:
    """Return what failed in a pasted log or stack trace; None for any other text."""
    lines = plain(text).replace("```", "").splitlines()
    if sum(bool(line.strip()) for line in lines) < LEAST_LINES:
        return None
    whole = "\n".join(lines)
    is_trace = bool(frames(whole) or _OTHER_FRAME.search(whole))
    failed = [raised] if is_trace and (raised := _raised(whole)) else _failed_in_build(text)
    return Paste(tuple(line[:MAX_LINE] for line in failed), _question(lines)) if failed else None


def _failed_in_build(log: str) -> list[str]:
    """Return the lines of a build log that state the failure, the most decisive first; empty for any other text."""
    cause = build_cause(FailedBuild("", "", "", "", "", log), NO_HISTORY) if is_build_log(log) else None
    quoted = [evidence.quote for evidence in cause.evidence] if cause is not None else []
    stated = [line for line in quoted if decisiveness(line) > 0] or quoted
    return sorted(dict.fromkeys(stated), key=lambda line: -decisiveness(line))[:SEARCHED]


def _raised(trace: str) -> str:
    """Return the first cause in a stack trace: the last “Caused by”, or the exception that was raised first."""
    if causes := _CAUSED_BY.findall(trace):
        return causes[-1]
    raised = _RAISED.findall(trace) or _PANIC.findall(trace) or _RUBY.findall(trace)
    if not raised:
        return ""
    return raised[0] if _CHAINED.search(trace) or not trace.lstrip().startswith("Traceback") else raised[-1]


def _question(lines: list[str]) -> str:
    """Return the sentence before or after the paste that asks something; empty if there is none."""
    sentences = [line.strip() for line in lines if line.strip()]
    return next((line for line in (*sentences[:2], *sentences[-2:]) if line.endswith("?")), "")
