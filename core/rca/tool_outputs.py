"""The outputs of tools, or pasted text: untrusted, in blocks of tables, descriptions, manifests and logs with their records.

Records without a time are spread over the time before the end of the log, in their order, so that what was logged all
along differs from what is new. A log that is short, or mostly trouble, has no such baseline: all of it is the present.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from itertools import zip_longest
from typing import cast

from core.model.log_levels import DEBUG, INFO, level_in, without_control
from core.model.text import load_json
from core.ports import LogLine
from core.rca.cluster.described import kind_of, objects, time_of
from core.rca.cluster.manifests import KINDS, is_manifest
from core.rca.cluster.state import app_of
from core.rca.failures import FAULTS, trouble
from core.rca.log_lines import FIELDS_OF_TEXT, ROOT_CAUSE

PASTED = "pasted text"  # in place of a tool's name
MAX_READ = 400_000  # characters of an output

_NAME = re.compile(
    r"(?!.*(?:namespace|cluster|container|file|user))(?:\w*name|service|deployment|pod|node|job|host|workload|group_id)"
)
_IDS = ("id", "finding_id", "issue_id", "alert_id", "incident_id")
_PROMPT = re.compile(
    r"^(?:[\w.@~:/-]{0,60}[$#%>]|PS [^>\n]{0,60}>|❯|➜) (?=(?:sudo )?(?P<command>[a-z][\w.-]{1,30}) (?P<rest>.*))"
)
_HEADING = re.compile(r"^(?:[A-Za-z]+ ){0,6}(?P<name>[A-Za-z][\w.-]{1,62}):\s*$")
_FLAGS = re.compile(r"(?:-c|--container|-n|--namespace)[ =](\S+)")
_WORD = re.compile(r"[^\s'\"=]+")
HEADER = re.compile(r"^(?:NAMESPACE +)?NAME +[A-Z]|^LAST SEEN ")
_FIELD = re.compile(r"^[A-Z][\w /-]{0,40}:(?: |$)")
_MANIFEST = re.compile(r"^(?:apiVersion|kind): |^\{\s*$|^\{ *\"(?:apiVersion|kind|items)\"")
_CHECKS = ("connect", "ping", "curl", "probe", "reach", "telnet", "netcat")  # in the names of tools


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The answer of a tool to one call. `text` is untrusted; `failed` is True if the call itself failed."""

    tool: str
    arguments: Mapping[str, str]
    text: str
    failed: bool = False

    @property
    def source(self) -> str:
        """Return the call as it is cited: “kubectl_describe(pod, api-0)”."""
        return f"{self.tool}({', '.join(value for value in self.arguments.values() if value)})"

    @property
    def is_record(self) -> bool:
        """Return whether it is about one thing given by its id, such as the investigated alert."""
        return any(key.lower() in _IDS for key in self.arguments)

    @property
    def is_document(self) -> bool:
        """Return whether it is a fetched page, which tells what could happen, not what happened."""
        return any(
            key.lower() in ("url", "uri") or value.startswith(("http://", "https://"))
            for key, value in self.arguments.items()
        )

    @property
    def subject(self) -> str:
        """Return the name that the tool was asked about; empty if there is none."""
        return next((value for key, value in self.arguments.items() if value and _NAME.fullmatch(key.lower())), "")


def is_check(output: ToolOutput) -> bool:
    """Return whether an output is that of a check whether something answers."""
    tool = output.tool.lower()
    return bool(output.subject) and any(check in tool for check in _CHECKS)


class OutputForm(Enum):
    TABLE = auto()  # with a header, as of `kubectl get`
    DESCRIPTION = auto()  # as of `kubectl describe`
    MANIFEST = auto()  # YAML or JSON
    LINES = auto()  # anything else


@dataclass(frozen=True, slots=True)
class OutputBlock:
    """Lines of an output of one form."""

    kind: OutputForm
    output: ToolOutput
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def blocks(output: ToolOutput) -> Iterator[OutputBlock]:
    """Yield the blocks of an output; a pasted terminal is first cut into the outputs of its commands."""
    for part in _commands(replace(output, text=without_control(output.text[:MAX_READ]))):
        yield from _blocks(part)


def _commands(output: ToolOutput) -> list[ToolOutput]:
    """Return the output of each command of a terminal, and the log below each heading, named by what they are about."""
    parts = [(output.arguments, list[str]())]
    for line, following in zip_longest(given := output.text.splitlines(), given[1:], fillvalue=""):
        if match := _PROMPT.match(line) or (_HEADING.match(line) if _TIME.match(following) else None):
            named = match.groupdict()
            about = {"service": named["name"]} if "name" in named else _arguments(match["command"], match["rest"])
            parts.append((about, []))
        else:
            parts[-1][1].append(line)
    texts = ((about, "\n".join(lines)) for about, lines in parts)
    return [replace(output, arguments=about, text=text) for about, text in texts if text.strip()]


def _arguments(command: str, rest: str) -> Mapping[str, str]:
    """Return what a command is, and the object that `kubectl` or `oc` is asked about."""
    words = [word for word in _WORD.findall(rest) if not word.startswith("-")]
    flags = _FLAGS.findall(rest)
    words = [word for word in words if word not in flags]
    if command not in ("kubectl", "oc", "k") or not words:
        return {"command": f"{command} {rest}"[:80]}
    named = {"command": " ".join([command, *words])[:80]}
    if words[0] in ("logs", "log") and len(words) > 1:
        named["pod"] = words[1].rpartition("/")[2]
    elif words[0] == "describe" and len(words) > 1:
        kind, _, name = words[1].partition("/")
        named[kind.removesuffix("s")] = name or " ".join(words[2:3])
    return named


def _blocks(output: ToolOutput) -> list[OutputBlock]:
    text = output.text
    if text.lstrip()[:1] in ("{", "[") or _MANIFEST.match(text.lstrip()):
        return [OutputBlock(OutputForm.MANIFEST, output, tuple(text.splitlines()))]
    parts = [(OutputForm.LINES, output, list[str]())]
    blank = False
    for line in text.splitlines():
        kind, _, lines = parts[-1]
        begins = _begins(line, kind, blank=blank)
        if begins is not None:
            is_log = kind is OutputForm.DESCRIPTION and (_TIME.match(line) or level_in(line)) and not output.arguments
            about = replace(output, arguments={"pod": lines[0].partition(":")[2].strip()}) if is_log else output
            parts.append((begins, about, []))
        parts[-1][2].append(line)
        blank = not line.strip()
    return [OutputBlock(kind, about, tuple(lines)) for kind, about, lines in parts if any(map(str.strip, lines))]


def _begins(line: str, kind: OutputForm, *, blank: bool) -> OutputForm | None:
    """Return the kind of the block that a line begins after one of `kind`; None if it goes on."""
    if HEADER.match(line):
        return OutputForm.TABLE
    if line.startswith("Name: "):
        return OutputForm.DESCRIPTION
    if _MANIFEST.match(line) and kind is not OutputForm.MANIFEST:
        return OutputForm.MANIFEST
    if kind is OutputForm.LINES or not (blank and line.strip()):
        return None
    is_text = line[:1].strip() and not line.startswith("---") and (bool(level_in(line)) or not _FIELD.match(line))
    return OutputForm.LINES if kind is OutputForm.TABLE or is_text else None


MAX_RECORDS = 4_000  # of one output
MAX_LINE = 8_192  # characters of a record
SPREAD = timedelta(hours=1)  # over which records without a time are spread
LEAST = 20  # of the records of a log that has a baseline
SEVERAL = 3  # warnings without a baseline that are trouble, whatever they say
MOSTLY = 0.3  # share of trouble from which a log has none

_TIME = re.compile(
    r"\W{0,2}(?P<at>\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})? ?(?P<zone>Z|UTC|[+-]\d\d:?\d\d)?)\W{0,2}\s"
)
_CONTINUED = re.compile(r"[ \t]|Caused by:|\}|\)|During handling of|Traceback|\.\.\. \d+ more")
EVENT = re.compile(r"(?P<seen>^.{0,60}?)(?:^|(?<=\s))(?P<type>Normal|Warning)\s+(?P<reason>[A-Z]\w+)\s+(?P<rest>\S.*)$")
DAEMON = re.compile(r"^\W{0,40}(?:Status: \W{0,4})?(?P<name>[\w@-]{1,80})\.service\b")
_TIME_KEYS = frozenset({"time", "timestamp", "ts", "@timestamp", "@t", "date", "datetime", "eventtime"})
_LEVEL_KEYS = frozenset({"level", "severity", "lvl", "loglevel", "status", "levelname", "count"})
_OF_THE_TOOL = re.compile(
    r"previous terminated container|Metrics API not available|doesn't have a resource type|unknown (?:flag|command)"
    r"|failed with return code|^Defaulted container|^Error from server|^\S+ \S+:$|^(?:NAME|Name|LAST SEEN)\b"
    r"|^\W{0,3}(?i:(?:(?:data|result) )?(?:is )?not (?:available|found|recorded)|none|n/a|nothing(?: was)? found"
    r"|no (?:data|output|results?|logs?|events?|entries|lines|matches|records|resources?)\b[^:=]{0,60})\W{0,3}$"
)
"""Matches lines about the tool itself or its call, which are not trouble of the subject."""


def records_of(output: ToolOutput, service: str, until: datetime) -> list[LogLine]:
    """Return the log records in an output, about the object that the tool was asked about, else about `service`."""
    if output.failed or output.is_document or output.is_record:
        return []
    records: list[LogLine] = []
    for block in blocks(output):
        if is_check(output) or any(DAEMON.match(line) for line in block.lines[:LEAST]):
            continue
        subject = app_of(block.output.subject) if block.output.subject else service or output.tool
        if block.kind is OutputForm.LINES:
            records += _of_lines(block, subject, until)
        elif block.kind is OutputForm.MANIFEST and not is_manifest(block.text):
            records += _of_document(block, subject, until)
        else:
            records += _of_messages(block, subject, until)
    return records[-MAX_RECORDS:]


def _is_row(line: str) -> bool:
    """Return whether a line is an event, or the row of a table of objects whose header is missing."""
    counts = (column.strip().partition("/") for column in line.split("  ")[1:])  # such as 1/2
    return EVENT.search(line) is not None or any(ready.isdecimal() and all_.isdecimal() for ready, _, all_ in counts)


def is_record(line: str) -> bool:
    """Return whether a line of pasted text is a log record: it tells its time or its level."""
    return _TIME.match(line) is not None or bool(level_in(line))


def prose_of(text: str) -> str:
    """Return what a person wrote in a pasted text: the lines that are no log record and no output of a command."""
    parts = [block for block in blocks(ToolOutput(PASTED, {}, text)) if not block.output.arguments]
    lines = [line for block in parts if block.kind is OutputForm.LINES for line in block.lines]
    return "\n".join(line for line in lines if not (is_record(line) or _is_row(line)))


def said_by(output: ToolOutput) -> str:
    """Return what the record of an alert says in words: its title, its summary and its description."""
    lines = (_SAID_IN.match(line) for line in output.text.splitlines())
    return "\n".join(match["text"] for match in lines if match)


_IS_READ = re.compile(rf"kind[\"']?: ?[\"']?(?:Event|{'|'.join(KINDS)})\b")
_SAID_IN = re.compile(
    r"\s*+(?:- )?[\"']?(?:description|title|message|summary|subject\w{0,10})[\"']?:\s*+[\"']?(?P<text>.+?)(?:(?<![\"',])[\"',]+)?$",
    re.IGNORECASE,
)


def _of_lines(block: OutputBlock, service: str, until: datetime) -> list[LogLine]:
    is_prose = block.output.tool == PASTED and not block.output.arguments
    given: list[tuple[datetime | None, str]] = []
    for line in block.lines:
        if not line.strip() or _OF_THE_TOOL.search(line) or _is_row(line):
            continue
        is_error = bool(given) and level_in(given[-1][1]) not in ("", INFO, DEBUG)
        is_continued = bool(given) and bool(_CONTINUED.match(line) or (is_error and ROOT_CAUSE.match(line)))
        if is_continued and (given[-1][0] or level_in(given[-1][1]) or not line[:1].isspace()):
            at, text = given[-1]
            given[-1] = (at, f"{text}\n{line}"[:MAX_LINE])
        elif is_continued or not is_prose or is_record(line):
            given.append(_timed(line))
    return _dated(given, service, until)


def _timed(text: str) -> tuple[datetime | None, str]:
    """Return the time at the start or in the fields of a record, if it tells one with a zone, and the rest of it."""
    match = _TIME.match(text)
    rest = (text[match.end() :] if match else text)[:MAX_LINE].strip()
    return (_time(match["at"]) if match and match["zone"] else None) or _time_in(rest), rest


def _of_document(block: OutputBlock, service: str, until: datetime) -> list[LogLine]:
    """Return the records in a JSON document: the objects with a text and a time, a level or a count."""
    try:
        pending: list[object] = [load_json(block.text)]
    except ValueError:
        return _of_lines(block, service, until)
    given: list[tuple[datetime | None, str]] = []
    named: list[str] = []
    for _ in range(MAX_RECORDS):
        if not pending:
            break
        each = pending.pop(0)
        if isinstance(each, list):
            pending[:0] = cast("list[object]", each)
        elif isinstance(each, dict):
            record = cast("dict[str, object]", each)
            keys = {str(key).lower(): key for key in record}
            text = next(
                (record[keys[key]] for key in FIELDS_OF_TEXT if isinstance(record.get(keys.get(key, "")), str)), None
            )
            if isinstance(text, str) and keys.keys() & (_TIME_KEYS | _LEVEL_KEYS):
                plain = (item for item in record.items() if not isinstance(item[1], dict | list))
                level = level_in(" ".join(f"{key}={value}" for key, value in plain))
                own, text = _timed(text)
                at = next((_time(str(record[keys[key]])) for key in _TIME_KEYS if key in keys), None) or own
                given.append((at, text if level_in(text) or not level else f"{level} {text}"))
                named.append(str(record.get(keys.get("service", ""), "") or service))
            else:
                pending[:0] = list(record.values())
    return [replace(line, service=name) for line, name in zip(_dated(given, service, until), named, strict=True)]


def _of_messages(block: OutputBlock, service: str, until: datetime) -> list[LogLine]:
    """Return the messages of trouble in descriptions, manifests and tables of objects that are not read otherwise."""
    if any(kind_of(fields) for fields, _ in objects(block.lines)) or _IS_READ.search(block.text):
        return []
    lines = (match["text"] for line in block.lines if (match := _SAID_IN.match(line)))
    return _dated([(None, line) for line in lines if _level(line) != INFO], service, until)


def _dated(given: Sequence[tuple[datetime | None, str]], service: str, until: datetime) -> list[LogLine]:
    """Return records with their levels, and with times in their order for those that tell none."""
    if not given:
        return []
    levels = [_level(text) for _, text in given]
    is_flat = len(given) < LEAST or sum(level != INFO for level in levels) >= MOSTLY * len(given)
    if is_flat:  # one warning may be an ordinary one
        levels = [
            INFO if level == "WARN" and levels.count(level) < SEVERAL and not _tells_why(text) else level
            for (_, text), level in zip(given, levels, strict=True)
        ]
    step = timedelta(seconds=1) / len(given) if is_flat else SPREAD / len(given)
    spread = (until - step * left for left in range(len(given), 0, -1))
    return [
        LogLine(service, at if at is not None and at <= until else own, level, text)
        for (at, text), level, own in zip(given, levels, spread, strict=True)
    ]


_FAULTS = [saying.words for fault in FAULTS.values() for saying in fault.says if saying.where == "log"]


def _tells_why(text: str) -> bool:
    report = trouble(text)
    is_cause = report is not None and report.is_cause and report.strength >= LOUD
    return is_cause or any(words.search(text) for words in _FAULTS)


def _level(text: str) -> str:
    """Return the level that a record states; by its words, if it states none."""
    if level := level_in(text):
        return level
    report = trouble(text)
    if report is None or report.strength < LOUD:
        return INFO
    return "ERROR" if report.is_cause else "WARN"


LOUD = 0.45  # strength of the words of a record without a level, from which it reports trouble


def _time(text: str) -> datetime | None:
    return time_of(text.strip().replace("/", "-").replace(",", ".").replace(" UTC", "+00:00").replace("T ", "T"))


def _time_in(text: str) -> datetime | None:
    """Return the time in the fields of a record; None if it has none."""
    if not text.startswith("{"):
        return None
    try:
        record = load_json(text)
    except ValueError:
        return None
    fields = cast("dict[str, object]", record).items() if isinstance(record, dict) else ()
    return next((at for key, value in fields if key.lower() in _TIME_KEYS and (at := _time(str(value)))), None)
