"""Levels of log records, as logging libraries, collectors and operating systems write them, and text without what a terminal
obeys instead of showing it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import cast

FATAL, CRITICAL, ERROR, WARN, INFO, DEBUG = "FATAL", "CRITICAL", "ERROR", "WARN", "INFO", "DEBUG"
NAMES: Mapping[str, str] = {
    name: level
    for level, names in {
        FATAL: "fatal ftl panic pnc emerg emergency",
        CRITICAL: "critical crit alert",
        ERROR: "error err eror severe fail",
        WARN: "warning warn wrn",
        INFO: "info information informational inf notice",
        DEBUG: "debug dbug dbg trace trce trc verbose vrb fine finer finest",
    }.items()
    for name in names.split()
}
_LETTERS = {"T": DEBUG, "D": DEBUG, "I": INFO, "N": INFO, "W": WARN, "E": ERROR, "C": CRITICAL, "F": FATAL}
_REDIS = {".": DEBUG, "-": DEBUG, "*": INFO, "#": WARN}
_SYSLOG = (FATAL, CRITICAL, CRITICAL, ERROR, WARN, INFO, INFO, DEBUG)  # RFC 5424, section 6.2.1
_NODE = dict(zip(range(10, 70, 10), (DEBUG, DEBUG, INFO, WARN, ERROR, FATAL), strict=True))  # pino and bunyan
_PYTHON = dict(zip(range(10, 60, 10), (DEBUG, INFO, WARN, ERROR, CRITICAL), strict=True))
_DOTNET = dict(enumerate((DEBUG, DEBUG, INFO, WARN, ERROR, CRITICAL)))  # Microsoft.Extensions.Logging
_GOOGLE = dict(zip(range(0, 900, 100), (INFO, DEBUG, INFO, INFO, WARN, ERROR, *_SYSLOG[2::-1]), strict=True))
_MONOLOG = {100: DEBUG, 200: INFO, 250: INFO, 300: WARN, 400: ERROR, 500: CRITICAL, 550: CRITICAL, 600: FATAL}
_TELEMETRY = {number: (DEBUG, DEBUG, INFO, WARN, ERROR, FATAL)[(number - 1) // 4] for number in range(1, 25)}
_NUMBERED = _NODE | {number: level for number, level in _MONOLOG.items() if number >= 100}
_FIELDS: Mapping[str, Mapping[int, str]] = {
    "severitynumber": _TELEMETRY,
    "levelno": _PYTHON,
    "levelnumber": _PYTHON,
    "loglevel": _DOTNET | _NODE,
    "severity": dict(enumerate(_SYSLOG)) | {number: level for number, level in _GOOGLE.items() if number >= 100},
    "syslogseverity": dict(enumerate(_SYSLOG)),
    "syslogpriority": dict(enumerate(_SYSLOG)),
    "level": _NUMBERED,
    "lvl": _NUMBERED,
    **{
        key: {}
        for key in ("detectedlevel", "levelname", "severitytext", "severityname", "@l", "@level", "prioritykeyword")
    },
}
"""The scale of the numbers in each field, by its name in lower case and without separators."""
_RECORD_KEYS = frozenset(
    {"msg", "message", "@m", "@mt", "@message", "body", "short_message", "event", "text", "error", "err"}
)
_GELF = frozenset({"short_message", "full_message", "facility"})  # records whose `level` counts as in syslog
_WRAPPED = ("log", "msg", "message", "@m", "@mt", "@message", "body", "MESSAGE")  # fields with the text of a record
_OTHER_LEVEL = re.compile(
    r"\blevels?\b|player|character|game|water|river|tide|fuel|battery|tank|sensor|zoom|floor|depth|difficulty",
    re.IGNORECASE,
)
"""Matches what has a level of another kind."""
_HEAD = 200  # characters of a text that contain its level
_PRI = re.compile(r"<(\d{1,3})>(?=\S)")
_LETTERED = re.compile(
    r"(?:^|\s)([IWEF])(?:(?:20)?\d\d)?(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]) \d\d:\d\d:\d\d"  # klog, glog, CockroachDB
    r"|\d(?:\.\d{1,9})?Z ([DIWE])! |\d\.\d{3,9} ([TDINWEC]) \| "  # Telegraf, etcd
)
_CHANNEL = re.compile(r"(?:^|\s)[\w-]{1,40}\.(DEBUG|INFO|NOTICE|WARNING|ERROR|CRITICAL|ALERT|EMERGENCY): ")  # Monolog
_REDIS_LINE = re.compile(r"\d{1,7}:[XCSM] [\w :.]{20,30} ([.*#-]) ")
_KEY = r"log[._]?level|level(?:_?name)?|lvl|severity(?:[._]?(?:text|number))?|levelno|@l|PRIORITY"
_FIELD = re.compile(
    rf"""(?<![\w.@-])(?i:({_KEY}))["']?\s{{0,3}}[=:]\s{{0,3}}["']?([A-Za-z]{{1,13}}|\d{{1,3}})(?![\w.%])"""
)
_WORDS = "|".join(sorted(NAMES, key=len, reverse=True))
_BRACKETED = re.compile(rf"[\[(<|](?:[\w.]{{1,30}}:)?\s{{0,3}}({_WORDS})\s{{0,3}}[\])>|]", re.IGNORECASE)
_OPENING = re.compile(r"(fail|crit|warn|info|dbug|trce|error|fatal|panic|warning)(?:\[\w{1,12}\])?: ")
_AMBIGUOUS = "alert|fail|panic|emergency|verbose|trace|fine|information"  # words that shout in ordinary text, too
_SHOUTED = re.compile(
    rf"(?<![\w/.-])({'|'.join(name.upper() for name in NAMES if name not in _AMBIGUOUS.split('|'))})\b(?![/\w-])"
)
_STAMPED = re.compile(
    rf"^[^A-Za-z]{{0,40}}(?:[A-Z][a-z]{{2}} [^A-Za-z]{{0,30}}|T[^A-Za-z]{{0,30}}Z?[^A-Za-z]{{0,10}})?"
    rf"({_AMBIGUOUS.upper()})(?=[\s:\])|]|$)"
)
_COLUMN = re.compile(r"^[\W_]*+(\w+?)[\W_]*$")


@lru_cache(maxsize=1_000)
def level_named(name: str) -> str:
    """Return the level with this name in any common spelling, such as “err” or “LogLevel.Error”; empty if unknown."""
    match = _COLUMN.match(without_control(name).rpartition(".")[2])
    return (NAMES.get(match[1].lower()) or _LETTERS.get(match[1], "")) if match else ""


def level_of(labels: Mapping[str, str], text: str) -> str:
    """Return the level from the labels, else from the fields or the beginning of the text, else INFO."""
    return _of_fields(labels, is_record=False) or level_in(text) or INFO


def level_in(text: str) -> str:
    """Return the level that a record states; empty if it states none."""
    head = without_control(text[:_HEAD]).lstrip()
    if head.startswith("{") and (fields := _parsed(text)):
        inner = next((each for key in _WRAPPED if isinstance(each := fields.get(key), str)), "")
        return _of_fields(fields, is_record=True) or (level_in(inner) if not inner.startswith("{") else "")
    if (pri := _PRI.match(head)) and int(pri[1]) < 192:
        return _SYSLOG[int(pri[1]) % 8]
    if lettered := _LETTERED.search(head):
        return _LETTERS[str(lettered[lettered.lastindex or 1])]
    if redis := _REDIS_LINE.match(head):
        return _REDIS[redis[1]]
    for field in _FIELD.finditer(head):
        if level := _stated(field[1], field[2], head[: field.start()] + head[field.end() :]):
            return level
    word = (
        _CHANNEL.search(head)
        or _BRACKETED.search(head)
        or _OPENING.match(head)
        or _SHOUTED.search(head)
        or _STAMPED.match(head)
    )
    return NAMES[word[1].lower()] if word else ""


def _parsed(text: str) -> Mapping[str, object]:
    try:
        record = cast("object", json.loads(text))
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, object]", record) if isinstance(record, dict) else {}


def _of_fields(fields: Mapping[str, object], *, is_record: bool) -> str:
    """Return the level in the fields of a record or the labels of a stream; names count before numbers."""
    nested = fields.get("log")
    if isinstance(nested, dict) and "level" in nested:
        return level_named(str(cast("dict[str, object]", nested)["level"]))
    values = [(key, str(value)) for key, value in fields.items() if isinstance(value, (str, int)) and value is not True]
    if level := next(filter(None, (level_named(value) for key, value in values if _plain(key) in _FIELDS)), ""):
        return level
    if is_record and {"s", "c", "id"} <= fields.keys():  # MongoDB
        return _LETTERS.get(str(fields["s"])[:1], "")
    if is_record and not _RECORD_KEYS & {key.lower() for key in fields}:
        return ""
    rest = " ".join(f"{key} {value}" for key, value in values if _plain(key) not in _FIELDS)
    syslog = not is_record or bool(_GELF & fields.keys())
    return next(filter(None, (_stated(key, value, rest, syslog=syslog) for key, value in values)), "")


def _stated(key: str, value: str, rest: str, *, syslog: bool = False) -> str:
    """Return the level that one field states. A number counts only if the rest is not about another kind of level."""
    if not value.isdecimal():
        return level_named(value) if _plain(key) in _FIELDS else ""
    name = _plain(key)
    number, scale = int(value), _FIELDS.get("syslogseverity" if key == "PRIORITY" else name, {})
    if name in ("level", "lvl") and _OTHER_LEVEL.search(rest):
        return ""
    return scale.get(number, "") or (_SYSLOG[number] if syslog and name == "level" and number < len(_SYSLOG) else "")


def _plain(key: str) -> str:
    return key.lower().replace("_", "").replace(".", "").replace("-", "")


_SHOWN = r"(?:\[(?:[\d;?]{1,30}[A-Za-z]|[mK])|[PX\]^_][^^\n\u2407\u241b]*+(?:\^G|\u2407|(?:\^\[|\u241b)\\))"
_CONTROL = re.compile(
    # ECMA-48, sections 5.3 to 5.6: control sequences; control strings (APC, DCS, OSC, PM, SOS), which end with ST, with BEL
    # as in xterm, or at the next escape; other escape sequences. Each alternative begins with one character, for speed.
    r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|_bk;t=\d{1,16}\x07?|[PX\]^_][^\x07\x1b\x9c\n]*+(?:[\x07\x9c]|\x1b\\|(?=\x1b)|\Z)|[ -/]*+[0-~])?"
    r"|\x9b[0-?]*+[ -/]*+[@-~]|"
    + "|".join(rf"{start}[^\x07\x1b\x80\x90\x98\x9c-\x9f\n]*+\x9c" for start in "\x90\x98\x9d\x9e\x9f")
    + rf"|\^\[{_SHOWN}|\u241b{_SHOWN}"  # as pagers and editors show them
    r"|_bk;t=\d{1,16}"  # the time of Buildkite without its ends, and a colour without its escape, but no range of a query
    r"|\[\d{1,3}(?:;\d{1,3}){0,4}[mK](?!\])"
)


def without_control(text: str) -> str:
    """Return the text without control sequences, control strings and other escape sequences. It has as many lines."""
    return _CONTROL.sub("", text)
