"""Free text such as a container's log: every message once, and the lines around those that complain."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from core.model.incident import EvidenceKind
from core.rca.log_templates import masked
from core.rca.tool_outputs.clue import MAX_QUOTE, Clue, Lines, Role, cut, spoken
from core.rca.tool_outputs.trouble import Trouble, trouble

MAX_COMPARED = 400  # characters of a line by which it is told whether it was there before
MAX_READ = 4_000  # characters of a line in which trouble is looked for
MAX_CLUES = 200  # of one log
ENDS = 0.15  # strength of the last line of a log without complaints: no cause by itself
SHORT = 6  # words of a line that is told together with the next one
END = 8  # lines at the end of a log, where a process says what it died of

SOUGHT = 1.15  # how much more it explains that holds an id or a time of the question
LAST_WORDS = 1.06  # how much more what is said at the end explains
INNERMOST = 1.15  # how much more the innermost cause of a stack trace explains
THROWN = 1.07  # how much more the exception itself explains than that something failed
PASSED = 0.8  # how much less trouble that did not come back in most of the log explains

ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|\[\d{1,2}(?:;\d{1,3})*m")
_FRAME = re.compile(r"^\s+(?:at |\.\.\. \d+ more|in \w+$)|^goroutine \d+|^\s+[\w./-]+\.go:\d+")
_INNER = re.compile(r"^\s*(?:Caused by|Root cause)\b", re.IGNORECASE)
_THROWN = re.compile(r"^[\w.]*[a-z](?:Error|Exception)(?::|$)")
_PREFIX = re.compile(
    r"^\W{0,2}(?:(?:\d{4}[-/]\d\d[-/]\d\d|\d\d[-/]\w{3}[-/]\d{4})?[T :]*\d\d:\d\d:\d\d\S*[\s|:,-]*"
    r"|\[[^\]]{1,40}\]\s+(?=[A-Z]+\b)|\[?\b(?:FATAL|CRITICAL|ERROR|WARN(?:ING)?|INFO|DEBUG)\b\]?\W*|[EWIF]\d{4}\s+|\w{3} +\d+ (?=\d\d:))",
    re.IGNORECASE,
)
_MESSAGE_FIELDS = ("msg", "message", "event", "error", "err", "exception", "reason", "detail", "cause")


@dataclass(slots=True)
class _Message:
    """A message of a log with how often and where it stands."""

    first: int
    last: int
    count: int
    trouble: Trouble
    sought: bool


def log_clues(lines: Lines, subject: str, sought: Collection[str] = ()) -> list[Clue]:
    """The strongest complaints of a log, each message once, but every one with a `sought` id or time."""
    messages = _messages(lines.all, sought)
    ended = max((number for number, line in enumerate(lines.all) if line.strip()), default=0)
    found = [_clue(lines, message, subject, ended) for message in messages.values()]
    strongest = sorted(found, key=lambda clue: -clue.strength)[:MAX_CLUES]
    return (
        strongest
        if any(clue.strength > ENDS for clue in strongest)
        else [*strongest, *_last_words(lines, subject, ended)]
    )


def _last_words(lines: Lines, subject: str, ended: int) -> Iterator[Clue]:
    """What a log ends with: all there is to go by where a process died without a complaint."""
    if lines.all and (last := lines.all[ended].strip()):
        quote = cut(last) if len(last) > MAX_QUOTE else lines.quote(ended, wanted=range(ended - 1, -1, -1))
        yield Clue(subject, f"its log ends with “{said(last)}”", quote, ENDS, Role.CAUSE, EvidenceKind.LOG)


def _messages(lines: list[str], sought: Collection[str]) -> Mapping[str, _Message]:
    """Every message that complains by what it says when numbers and ids are left out."""
    messages: dict[str, _Message] = {}
    calm: set[str] = set()
    for number, line in enumerate(lines):
        exact = bool(sought) and any(part in line for part in sought)
        compared = line[:MAX_COMPARED] if exact else masked(line[:MAX_COMPARED])
        if compared in calm:
            continue
        known = messages.get(compared)
        if known is not None:
            known.last = number
            known.count += 1
            continue
        found = None if _FRAME.match(line) else trouble(line[:MAX_READ])
        if found is None:
            calm.add(compared)
        else:
            messages[compared] = _Message(number, number, 1, found, exact)
    return messages


def _clue(lines: Lines, message: _Message, subject: str, ended: int) -> Clue:
    line = lines.all[message.last]
    strength = message.trouble.strength
    if message.sought:
        strength *= SOUGHT
    if _INNER.match(line):
        strength *= INNERMOST
    elif _THROWN.match(line):
        strength *= THROWN
    if message.last >= ended - END:
        strength *= LAST_WORDS
    elif message.count == 1 and ended - message.last > ended * 3 // 4:
        strength *= PASSED
    return Clue(
        subject=subject,
        statement=_statement(lines.all, message.last, message.trouble.start),
        quote=_quote(lines, message.last, message.trouble.start),
        strength=min(strength, 1.0),
        role=message.trouble.role,
        kind=EvidenceKind.LOG,
    )


def _statement(lines: list[str], number: int, start: int) -> str:
    """What a line says, with the next one where it is short and the next complains too."""
    statement = said(lines[number], start)
    following = lines[number + 1] if number + 1 < len(lines) else ""
    if len(statement.split()) > SHORT or _FRAME.match(following) or trouble(following[:MAX_READ]) is None:
        return statement
    return f"{statement} {said(following)}"


def said(line: str, start: int = 0) -> str:
    """What a log line says, without its time and level."""
    text = line.strip()
    if text.startswith("{") and (fields := _fields(text)):
        return spoken("; ".join(dict.fromkeys(fields)))
    for _ in range(3):
        text = _PREFIX.sub("", text, count=1)
    if len(text) > MAX_QUOTE * 2:
        text = cut(text, start)
    return spoken(text)


def _fields(text: str) -> list[str]:
    """The fields of a JSON record that say something in words."""
    try:
        record = cast("object", json.loads(text))
    except (ValueError, RecursionError):
        return []
    if not isinstance(record, dict):
        return []
    known = {str(key).lower(): value for key, value in cast("dict[object, object]", record).items()}
    return [str(known[name]) for name in _MESSAGE_FIELDS if isinstance(known.get(name), str) and known[name]]


def _quote(lines: Lines, number: int, start: int) -> str:
    """The line with its neighbours as far as they say something else and there is room."""
    line = lines.all[number]
    if len(line) > MAX_QUOTE:
        return cut(line, start)
    wanted = list(_neighbours(lines.all, number))
    return lines.quote(number, wanted=wanted)


def _neighbours(lines: list[str], number: int) -> Iterator[int]:
    """The lines that are worth quoting with one: the nearest first, without frames of a stack trace and repetitions."""
    seen = {masked(lines[number][:MAX_COMPARED])}
    for step in (1, -1, 2, -2, 3, -3):
        place = number + step
        if 0 <= place < len(lines) and lines[place].strip() and not _FRAME.match(lines[place]):
            compared = masked(lines[place][:MAX_COMPARED])
            if compared not in seen:
                seen.add(compared)
                yield place
