"""The marks that build servers put into a log: the time before each line, colours, and where steps begin and fail.

Known are the marks of GitHub Actions, Azure Pipelines, GitLab CI and Jenkins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

_COLOUR = re.compile(r"\x1b\[[0-?]*[A-Za-z]|\[\d{1,3}(?:;\d{1,3}){0,4}[mK]")  # ECMA-48, CSI; pasted without its escape
_TIME = re.compile(
    r"^\ufeff?(?:[^\t\n]{1,120}\t[^\t\n]{1,120}\t\ufeff?(?=\d{4}-))?"  # the job and step of `gh run view --log`
    r"(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?(?: \d\d[OE][ +]?)?(?: |$)"
    r"|\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?(?: {1,2}|$))?",
    re.MULTILINE,
)
"""The time before a line; GitLab adds the stream that the line came from."""
_EXIT = re.compile(r"(?:##\[error\]|Error: ).{0,80}(?:completed with exit|exited with) code '?-?[1-9]")
_SECTION = re.compile(r"section_(?P<mark>start|end):\d{1,12}:(?P<name>[\w.-]{1,80})")
_SCRIPTS = frozenset({"step_script", "build_script"})
_AFTERWARDS = ("after_script", "cleanup", "upload_artifacts", "archive_cache")
_PIPELINE = "[Pipeline] "
_OVER = ("[Pipeline] { (Declarative: Post Actions)", "[Pipeline] End of Pipeline")
_REPEATS = ("ERROR: script returned exit code", "Finished: ", "Setting status of")


def plain(log: str) -> str:
    """Return a log without colours and without the time before each line. It has the same number of lines."""
    return _TIME.sub("", _COLOUR.sub("", log))


def failing_steps(lines: Sequence[str]) -> list[range]:
    """Return the output of the steps that failed, as numbers of lines from 0; empty where no mark names a step.

    The lines are those of a log that is `plain`.
    """
    found = _github(lines) or _gitlab(lines) or _jenkins(lines)
    return [step for step in found if any(lines[number].strip() for number in step)]


def _github(lines: Sequence[str]) -> list[range]:
    """Read steps of GitHub Actions and Azure Pipelines; copied from a page, they lack `##[group]`."""
    errors = [number for number, line in enumerate(lines) if line.startswith("##[error]") or _EXIT.match(line)]
    if not errors:
        return []
    exits = {number for number in errors if _EXIT.match(lines[number])}
    steps: list[range] = []
    start, in_header = 0, False
    remaining = iter(sorted(exits or errors))
    error = next(remaining, None)
    for number, line in enumerate(lines):
        if line.startswith(("##[group]Run ", "##[section]Starting: ", "Run ", "Post job cleanup.")):
            start, in_header = number + 1, line.startswith("##[group]")
        elif in_header and line.startswith("##[endgroup]"):
            start, in_header = number + 1, False
        if number == error:
            steps.append(range(start, number if number in exits and start < number else number + 1))
            error = next(remaining, None)
    return steps


def _gitlab(lines: Sequence[str]) -> list[range]:
    """Read the last command of the script, or the section before it that the job did not get over."""
    if not any("section_start:" in line for line in lines):
        return []
    end = next((number for number, line in enumerate(lines) if line.startswith("ERROR: Job failed")), len(lines))
    sections: dict[str, range] = {}
    for number, line in enumerate(lines[:end]):
        for mark in _SECTION.finditer(line):
            first = sections[mark["name"]].start if mark["name"] in sections else number + 1
            sections[mark["name"]] = range(first, end if mark["mark"] == "start" else number)
    steps = [name for name in sections if not name.startswith(_AFTERWARDS)]
    if not steps:
        return []
    name = next((name for name in steps if name in _SCRIPTS), steps[-1])
    step = sections[name]
    last = max((number for number in step if lines[number].startswith("$ ")), default=step.start - 1)
    return [range(last + 1, step.stop)]


def _jenkins(lines: Sequence[str]) -> list[range]:
    """Read the last step before the rest of the pipeline was skipped, and an error of the pipeline itself."""
    marks = [number for number, line in enumerate(lines) if line.startswith(_PIPELINE)]
    if not marks:
        return []
    over = next(
        (n for n, line in enumerate(lines) if line.startswith(_OVER) or "skipped due to earlier failure" in line),
        len(lines),
    )
    if any(lines[mark].startswith("[Pipeline] { (Branch: ") for mark in marks):  # their lines are mixed
        return [range(marks[0], over)]
    before = [-1, *(mark for mark in marks if mark < over), over]
    outputs = [range(start + 1, end) for start, end in pairwise(before)]
    told = [step for step in outputs if any(lines[number].strip() for number in step)]
    tail = range(marks[-1] + 1, len(lines))
    own = any(line.strip() and not line.startswith(_REPEATS) for line in lines[tail.start :])
    return [*told[-1:], *([tail] if own else [])]
