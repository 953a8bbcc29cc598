"""How software says that something is wrong: by the words that name a cause, by those that only complain."""

from __future__ import annotations

import re
from dataclasses import dataclass

from core.rca.failures import CAUSE, COMPLAINT, EFFECTS, GRIEVANCE, phrases
from core.rca.tool_outputs.clue import Role

_CAUSE, _COMPLAINT, _GRIEVANCE = phrases(CAUSE), phrases(COMPLAINT), phrases(GRIEVANCE)
_EFFECT = re.compile(rf"(?<![A-Za-z0-9./-])(?:{EFFECTS})(?![A-Za-z0-9]|-\w|/\w|(?-i:_[a-z]))", re.IGNORECASE)
_NOT_WELL = re.compile(
    r"\b(?:success\w*|ok|healthy|ready|valid|available)[\"']?\s*[=:]\s*[\"']?(?:false|no)\b", re.IGNORECASE
)
_NEGATED = re.compile(
    r"\b(?:no|without(?: any)?|zero|0) (?:\w+ )?(?:errors?|failures?|exceptions?|problems?|issues?|timeouts?)\b"
    r"|\b(?:\w+[_ ])?(?:errors?|failures?|failed|exceptions?|timeouts?|err|dropped|lost|missing)(?:_\w+)?[\"']?"
    r"\s*[=:]\s*[\"']?(?:0\b|none|null|nil|false|\[\]|\{\}|NO_ERROR)"
    r"|\b(?:no|not) (?:expired|lost|dropped|missing)\b|\b0 (?:failed|lost|dropped|missing)\b",
    re.IGNORECASE,
)
_REFUSED_REQUEST = re.compile(
    r"HTTP/[\d.]+\"? (?:5\d\d|40[0134]|429)\b|\bstatus(?:[_ ]?code)?[\"']?\s*+[=:]\s*+[\"']?5\d\d\b|\b(?:status|error|HTTP)(?:[_ ]?code)?[\"']?\s{0,8}[=: ]\s{0,8}[\"']?4(?:0[0-9]|13|22|29)\b|\b5\d\d (?:Internal|Bad|Service|Gateway)",
    re.IGNORECASE,
)
_LONG = re.compile(
    r"\b(?:took|takes|waits?|waited|waiting|blocked|duration|latency|elapsed|after|lag)\b.{0,60}?"
    r"\b(?:\d{5,}(?:\.\d+)? ?(?:ms|milliseconds)|\d{2,}(?:\.\d+)? ?(?:s|secs?|seconds)|\d+ ?(?:min|minutes|hours?))\b",
    re.IGNORECASE,
)  # that something took ten seconds or more
SECONDS = re.compile(
    r"\b(?:took|takes|in|for|after|waits?|waited|waiting|blocked|time|duration|latency|elapsed|lag|delay\w*)\b.{0,60}?"
    r"(?:\b\d{4,}(?:\.\d+)? ?(?:ms|milliseconds)|\b[1-9]\d*(?:\.\d+)? ?(?:s|secs?|seconds))\b",
    re.IGNORECASE,
)  # that something took a second or more: trouble only to who finds it slow
_LEVEL = re.compile(
    r"\b(?:level|lvl|severity|log\.level)[\"']?\s*[=:]\s*[\"']?(?P<field>[a-z]+)"
    r"|(?:^|[\s\[(|<])(?P<word>FATAL|CRITICAL|CRIT|ALERT|EMERG|PANIC|SEVERE|ERROR|ERR|WARN|WARNING|NOTICE|INFO|DEBUG|TRACE)"
    r"(?=[\s\])|>:,]|$)"
    r"|^(?P<glog>[EWIF])\d{4} \d\d:\d\d",
    re.IGNORECASE,
)
_LEVEL_WITHIN = 120  # characters of a line, within which its level stands
_GLOG = {"E": "error", "W": "warn", "I": "info", "F": "fatal"}
_LOUD = frozenset({"fatal", "critical", "crit", "alert", "emerg", "panic", "severe", "error", "err"})
_WARNING = frozenset({"warn", "warning"})
_CALM = frozenset({"info", "notice", "debug", "trace", "information"})


@dataclass(frozen=True, slots=True)
class Trouble:
    """That a line complains: how strongly in [0, 1], from which character on, and whether it says why."""

    strength: float
    start: int
    role: Role


def trouble(line: str) -> Trouble | None:
    """What a line of text complains of, by its level and its words; None if it does not."""
    heard = _NEGATED.sub(lambda match: " " * len(match.group()), line)
    level = level_of(heard)
    if cause := _CAUSE.search(heard):
        complains = level in _LOUD or _COMPLAINT.search(heard) is not None
        strength = 0.82 if complains else 0.7
        return Trouble(_toned(strength, level), cause.start(), Role.CAUSE)
    if served := _REFUSED_REQUEST.search(heard):
        return Trouble(_toned(0.55, level), served.start(), Role.EFFECT)
    said = heard if level is None else _LEVEL.sub(" ", heard, count=1)
    if complaint := _COMPLAINT.search(said) or _NOT_WELL.search(said):
        effect = _EFFECT.search(said) is not None
        strength = 0.45 if effect else 0.65 if level in _LOUD else 0.5
        return Trouble(_toned(strength, level), complaint.start(), Role.EFFECT if effect else Role.CAUSE)
    if slow := _LONG.search(said):
        return Trouble(0.4, slow.start(), Role.CAUSE)
    if grievance := _GRIEVANCE.search(said):
        return Trouble(_toned(0.6 if level in _LOUD else 0.3, level), grievance.start(), Role.CAUSE)
    if effect := _EFFECT.search(said):
        return Trouble(_toned(0.35 if level in _LOUD else 0.25, level), effect.start(), Role.EFFECT)
    if slow := SECONDS.search(said):
        return Trouble(0.18, slow.start(), Role.CAUSE)
    if level in _LOUD:
        return Trouble(0.55, 0, Role.CAUSE)
    return Trouble(0.18, 0, Role.CAUSE) if level in _WARNING else None


def telling(text: str) -> int:
    """Where the last reason in a text begins, 0 without one: errors that wrap each other end with the innermost."""
    return max((found.start() for found in _CAUSE.finditer(text)), default=0)


def _toned(strength: float, level: str | None) -> float:
    """A level says how the program itself took it."""
    return strength * (0.85 if level in _WARNING else 0.4 if level in _CALM else 1.0)


def level_of(line: str) -> str | None:
    """The level of a log line in lower case, None if it has none."""
    found = _LEVEL.search(line[:_LEVEL_WITHIN])
    if found is None:
        return None
    return _GLOG[found["glog"].upper()] if found["glog"] else (found["field"] or found["word"]).lower()
