"""Find clues in tool outputs: states of containers, Kubernetes events, rows of tables, and messages of logs.

Any other text is read as a log, with a message on each line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice, takewhile
from typing import cast

from core.model.explanation import EvidenceKind
from core.model.terminal_text import without_control
from core.rca.cluster.faults import ObjectFault
from core.rca.failures import Trouble, cause_offset, trouble
from core.rca.log_lines import masked

MAX_QUOTE = 300  # characters
MAX_COMPARED = 400  # characters by which repeated lines are recognised
MAX_READ = 4_000  # characters of a line that are searched for trouble
MAX_CLUES = 200  # of one log
MAX_BLOCK = 12  # lines below a state that belong to it
HEAD = 4_000  # characters of an output by which its format is recognised
SAYS_WHY, WARNS, REPEATS = 0.95, 0.7, 0.4  # strength of an event with a cause, a warning, and a repetition
IN_STATE = 0.5  # strength of a row with a bad state
CHANGED = 0.5  # strength of a change
FIELDS, MOSTLY = 4, 0.6  # lines, and share of the lines, from which a text consists of fields
ENDS = 0.15  # strength of the last line of a log without trouble, which is not a cause by itself
SOUGHT = 1.15  # factor on the strength of a line with an id or a time from the question
INNERMOST = 1.15  # factor on the strength of the innermost cause of a stack trace

_SPACE = re.compile(r"\s")
_COLUMNS = re.compile(r"\s{2,}")
_EVENT = re.compile(r"(?:^|\s)(?P<type>Normal|Warning)\s+(?P<reason>[A-Z]\w+)\s+(?P<rest>\S.*)$")
_OBJECT = re.compile(r"^\w[\w.]*/(?P<name>[\w.-]+)$")
_STATE = re.compile(r"^\s*(?:- )?(?:last ?)?state:\s*+(?P<value>\w*+)\s*+$", re.IGNORECASE)
_FIELD = re.compile(r"^\s*(?:- )?[\"']?(?P<key>[A-Za-z][A-Za-z -]{0,40}?)[\"']?:(?:\s++(?P<value>\S(?:.*\S)?))?\s*$")
_ROW = re.compile(
    r"(?:(?<=\s)|(?<=Init:)|(?<=,))(?P<state>OOMKilled|Evicted|NotReady|Lost|(?:CreateContainer|RunContainer)\w*Error|"
    r"InvalidImageName|ErrImage\w+|ImagePullBackOff|CrashLoopBackOff|\w*Error|Failed|Pending|Unknown|Missing|Degraded|"
    r"OutOfSync|SyncFailed|SchedulingDisabled|ContainerCannotRun|ContainerStatusUnknown|DeadlineExceeded)(?=[\s,]|$)"
)
_HEADING = re.compile(r"\s*+(?:- name: )?([a-z\d][a-z\d.-]{0,62}):?\Z")
"""Matches the name of a container, above its state."""
_TABLE = re.compile(r"^(?:NAMESPACE\s+)?NAME\s+\S|^\S.*\s\d+/\d+\s+(?:Init:)?[A-Z]\w+", re.MULTILINE)
_FORMED = re.compile(r"^Name:\s|^(?:apiVersion|kind|metadata|spec|status):|\A\s*[{\[]\s*$", re.MULTILINE)
"""Matches descriptions, manifests and JSON, in which only messages and conditions report trouble."""
_TELLS = re.compile(
    r"^\s*(?:- )?[\"']?(?:message|description|error|lasterror|failuremessage|title|summary)[\"']?:|endpoints:\s+<none>|Pressure\s+True"
    r"|^(?!.*Pressure\s+False).*\s(?:False|Unknown)\s+\S",
    re.IGNORECASE,
)
_TREE = re.compile(r"^[\s│├└─]+")
_RESOURCE = re.compile(r"[a-z][\w.-]*[-\w]$|[A-Z]\w+/\S+$")
_CHANGES = re.compile(r"change|deployments|commits|releases|rollouts|audit", re.IGNORECASE)
_DESCRIPTION = re.compile(
    r"\s*+(?:- )?[\"']?(?:description|title|message|summary|subject)[\"']?:\s*+[\"']?(?P<text>.+?)(?:(?<![\"',])[\"',]+)?$"
)
_OF_THE_TOOL = re.compile(
    r"previous terminated container|Metrics API not available|doesn't have a resource type|unknown (?:flag|command)"
    r"|failed with return code|^Defaulted container|^Error from server"
    r"|^\W{0,3}(?i:(?:(?:data|result) )?(?:is )?not (?:available|found|recorded)|none|n/a|nothing(?: was)? found"
    r"|no (?:data|output|results?|logs?|events?|entries|lines|matches|records|resources)(?: (?:were )?(?:found|available))?)\W{0,3}$"
)
"""Matches lines about the tool itself or its call, which are not trouble of the subject."""
_FRAME = re.compile(r"^\s+(?:at |\.\.\. \d+ more|in \w+$)|^goroutine \d+|^\s+[\w./-]+\.go:\d+")
_INNER = re.compile(r"^\s*(?:Caused by|Root cause)\b", re.IGNORECASE)
_PREFIX = re.compile(
    r"^\W{0,2}(?:(?:\d{4}[-/]\d\d[-/]\d\d|\d\d[-/]\w{3}[-/]\d{4})?[T :]*\d\d:\d\d:\d\d\S*[\s|:,-]*"
    r"|\[[^\]]{1,40}\]\s+(?=[A-Z]+\b)|\[?\b(?:FATAL|CRITICAL|ERROR|WARN(?:ING)?|INFO|DEBUG)\b\]?\W*|[EWIF]\d{4}\s+|\w{3} +\d+ (?=\d\d:)"
    r"|(?:- )?[\"']?message[\"']?:\s*[\"']?)",
    re.IGNORECASE,
)
_MESSAGE_FIELDS = ("msg", "message", "event", "error", "err", "exception", "reason", "detail", "cause")
_NAME = re.compile(
    r"(?!.*(?:namespace|cluster|container|file|user))(?:\w*name|service|deployment|pod|node|job|host|workload|group_id)"
)
_IDS = ("id", "finding_id", "issue_id", "alert_id", "incident_id")
_ADDRESS = re.compile(r"^https?://")
_SETTINGS = tuple(
    (re.compile(pattern, re.IGNORECASE), frozenset(fields.split()))
    for pattern, fields in (
        ("endpoints", "selector"),
        ("affinity|selector", "nodeselectors nodeselector"),
        ("taint", "tolerations"),
        ("insufficient", "requests"),
        ("readiness", "readiness"),
        ("liveness", "liveness"),
        ("pull", "image"),
        (r"\b(?:configmap|secret|volume)\b[^\n]{0,200}not found", "environment environmentvariablesfrom volumes"),
        ("crashloopbackoff|exited with", "command args"),
        ("memory", "limits"),
    )
)
"""By the text of a clue, the fields of a description that explain it."""


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
        return any(key.lower() in ("url", "uri") or _ADDRESS.match(value) for key, value in self.arguments.items())

    @property
    def subject(self) -> str:
        """Return the name that the tool was asked about; empty if there is none."""
        return next((value for key, value in self.arguments.items() if value and _NAME.fullmatch(key.lower())), "")


class ClueRole(StrEnum):
    """The role of a clue between the cause and the symptom."""

    CAUSE = "cause"  # why something went wrong
    EFFECT = "effect"  # a consequence of a cause: a restart, a back-off, a pod that is not ready


@dataclass(frozen=True, slots=True)
class Clue:
    """One sign of trouble. `strength` in [0, 1] combines its certainty and how much it explains.

    `subject` is the name of the thing in trouble (a pod, a node, a claim), `statement` the clue in words, `quote` its
    lines verbatim. `support` are further lines that explain it, such as the limit that was hit. `targeted` is True if
    the tool was asked about this subject by name. `finding` is the fault of an object that it tells of.
    """

    subject: str
    statement: str
    quote: str
    strength: float
    role: ClueRole
    kind: EvidenceKind = EvidenceKind.TOPOLOGY
    support: tuple[str, ...] = ()
    source: str = ""
    targeted: bool = False
    finding: ObjectFault | None = None


def clues(output: ToolOutput, sought: Collection[str] = ()) -> list[Clue]:
    """Return all clues in an output; none for documents and for failed calls.

    `sought` are ids and times from the question. A log line that contains one counts more.
    """
    if output.failed or output.is_document:
        return []
    subject = output.subject
    lines = [line for line in without_control(output.text).splitlines() if not _OF_THE_TOOL.search(line)]
    return [
        replace(
            clue,
            source=output.source,
            targeted=(bool(subject) and (clue.subject in ("", subject) or clue.subject.startswith(f"{subject}-")))
            or (output.is_record and not clue.subject),
            subject=clue.subject or subject,
        )
        for clue in _read(output, lines, subject, sought)
        if clue.quote.strip()
    ]


def _read(output: ToolOutput, lines: list[str], subject: str, sought: Collection[str]) -> list[Clue]:
    if _CHANGES.search(output.tool):
        return list(_changes(lines))
    states = [*_containers(lines, subject), *_events(lines, subject)]
    head = output.text[:HEAD]
    shown = [line for line in head.splitlines() if line.strip()]
    fields = sum(_FIELD.match(line) is not None for line in shown)
    if _FORMED.search(head) or fields >= max(FIELDS, MOSTLY * len(shown)):
        messages = _messages([line for line in lines if _TELLS.search(line)], subject, sought)
        states += [clue for clue in messages if clue.strength > ENDS and clue.role is ClueRole.CAUSE]
    elif not states:
        return list(_rows(lines)) if _TABLE.search(head) else _messages(lines, subject, sought)
    return [replace(clue, support=_support(clue, lines)) for clue in states]


def _changes(lines: list[str]) -> Iterator[Clue]:
    """Yield every change of a list, as a cause."""
    for number, line in enumerate(lines):
        if match := _DESCRIPTION.match(line):
            quote = _quote(lines, number, (number - 1, number - 2, number - 3, number + 1))
            yield Clue(
                "", f"changed before: {spoken(match['text'])}", quote, CHANGED, ClueRole.CAUSE, EvidenceKind.CHANGE
            )


def _containers(lines: list[str], subject: str) -> Iterator[Clue]:
    """Yield why containers wait or ended, from `kubectl describe pod` or the pod's YAML."""
    owner, above = subject, ""
    several = sum(line.strip().lower().startswith(("restart count:", "restartcount:")) for line in lines) > 1
    for number, line in enumerate(lines):
        field = _FIELD.match(line)
        if field and field["key"].lower() == "name" and field["value"] and (line[0] == "N" or above == "metadata"):
            owner = field["value"]
        above = field["key"] if field else ""
        if (state := _STATE.match(line)) is None:
            continue
        block = _nested(lines, number)
        fields = {
            match["key"].lower().replace(" ", ""): (match["value"] or "").strip("\"'")
            for each in (f"is{state['value']}:", *block)
            if (match := _FIELD.match(each))
        }
        reason = _died(fields, lines[number:]) or _waits(fields)
        if reason:
            statement, strength, role = reason
            quote = "\n".join([line, *block])
            message = fields.get("message", "")
            quote = (
                cut(quote, quote.find(message) + cause_offset(message))
                if message
                else _quote(lines, number, range(number + 1, number + MAX_BLOCK))
            )
            outer = next((each for each in reversed(lines[:number]) if _indent(each) < _indent(line)), "")
            name = _HEADING.match(outer) if several else None
            named = f"the container {name[1]}" if name else "the container"
            yield Clue(owner, f"{named} of {owner} {statement}", quote, strength, role)


def _nested(lines: list[str], number: int) -> list[str]:
    """Return the first lines below a line that are indented deeper."""
    deeper = takewhile(lambda each: _indent(each) > _indent(lines[number]), lines[number + 1 :])
    return list(islice(deeper, MAX_BLOCK))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _died(fields: Mapping[str, str], below: Sequence[str]) -> tuple[str, float, ClueRole] | None:
    code, reason, message = fields.get("exitcode", ""), fields.get("reason", ""), fields.get("message", "")
    if reason == "OOMKilled":
        limit = next((each.partition(":")[2].strip() for each in below if "memory:" in each), "")
        at = f" at its limit of {limit}" if limit else ""
        return f"was OOMKilled: it ran out of memory{at}, exit code {code}", 0.97, ClueRole.CAUSE
    if code in ("", "0"):
        return None
    if message:
        return f"failed to run ({reason}, exit code {code}): {spoken(message)}", 0.96, ClueRole.CAUSE
    return f"exited with code {code} ({reason or 'Error'})", 0.5, ClueRole.CAUSE


def _waits(fields: Mapping[str, str]) -> tuple[str, float, ClueRole] | None:
    reason, message = fields.get("reason", ""), fields.get("message", "")
    if not fields.keys() & {"iswaiting", "waiting"} or reason in ("", "ContainerCreating", "PodInitializing"):
        return None
    if message and reason != "CrashLoopBackOff" and not message.startswith("Back-off"):
        return f"waits in {reason}: {spoken(message)}", 0.95, ClueRole.CAUSE
    return f"waits in {reason}", 0.5, ClueRole.EFFECT


def _events(lines: list[str], subject: str) -> Iterator[Clue]:
    for line in lines:
        row = _EVENT.search(line)
        if row is None or row["type"] == "Normal":
            continue
        columns = _COLUMNS.split(row["rest"].strip())
        message = columns[-1]
        complaint = trouble(message)
        repeats = row["reason"].startswith("BackOff")
        named = next((each["name"] for column in columns if (each := _OBJECT.match(column))), subject)
        says_why = complaint is not None and complaint.is_cause
        yield Clue(
            named,
            f"{row['reason']}: {spoken(message)}",
            cut(line.strip() if len(line) <= MAX_QUOTE else message, cause_offset(message)),
            REPEATS if repeats else SAYS_WHY if says_why else WARNS,
            ClueRole.EFFECT if repeats else ClueRole.CAUSE,
        )


def _support(clue: Clue, lines: list[str]) -> tuple[str, ...]:
    """Return the first setting that explains a clue, with the lines nested in it."""
    for pattern, fields in _SETTINGS:
        if pattern.search(clue.statement):
            for number, line in enumerate(lines):
                field = _FIELD.match(line)
                if field and field["key"].lower().replace(" ", "").replace("-", "") in fields:
                    block = [line, *_nested(lines, number)]
                    if len(block) > 1 or field["value"] not in (None, "<none>", "{}", "[]"):
                        return (cut("\n".join(block)),)
    return ()


def _rows(lines: list[str]) -> Iterator[Clue]:
    """Yield the rows with a bad state in the output of `kubectl get` and similar tables."""
    for line in lines:
        if states := _ROW.findall(line):
            yield Clue(named_in(line), f"{named_in(line)} is {states[0]}", cut(line.strip()), IN_STATE, ClueRole.EFFECT)


def named_in(line: str) -> str:
    """Return the name in a row, which may follow that of its namespace."""
    columns = _TREE.sub("", line).split() or [""]
    if (
        len(columns) > 1
        and "/" not in columns[0]
        and _RESOURCE.match(columns[1])
        and columns[1] not in ("none", "true", "false")
    ):
        return columns[1].rpartition("/")[2]
    return columns[0].rpartition("/")[2]


def _messages(lines: list[str], subject: str, sought: Collection[str]) -> list[Clue]:
    """Return the strongest trouble in a log, each message once, except those with a `sought` id or time."""
    messages: dict[str, tuple[int, Trouble | None]] = {}  # the last line of each message
    for number, line in enumerate(lines):
        exact = any(part in line for part in sought)
        compared = line[:MAX_COMPARED] if exact else masked(line[:MAX_COMPARED])
        is_other = _FRAME.match(line) or _EVENT.search(line)
        report = messages[compared][1] if compared in messages else None if is_other else trouble(line[:MAX_READ])
        messages[compared] = number, report
    reports = [
        Clue(
            subject,
            message_of(lines[number], complaint.start),
            _around(lines, number, complaint.start),
            min(
                1.0,
                complaint.strength
                * (SOUGHT if any(part in lines[number] for part in sought) else 1.0)
                * (INNERMOST if _INNER.match(lines[number]) else 1.0),
            ),
            ClueRole.CAUSE if complaint.is_cause else ClueRole.EFFECT,
            EvidenceKind.LOG,
        )
        for number, complaint in messages.values()
        if complaint is not None
    ]
    if (
        not reports
        and (last := next((number for number in range(len(lines) - 1, -1, -1) if lines[number].strip()), None))
        is not None
    ):
        ends = f"its log ends with “{message_of(lines[last])}”"
        return [
            Clue(subject, ends, _quote(lines, last, range(last - 1, -1, -1)), ENDS, ClueRole.CAUSE, EvidenceKind.LOG)
        ]
    return sorted(reports, key=lambda clue: -clue.strength)[:MAX_CLUES]


def message_of(line: str, start: int = 0) -> str:
    """Return the message of a log line, without its time and level."""
    text = line.strip()
    if text.startswith("{") and (fields := _fields(text)):
        return spoken("; ".join(dict.fromkeys(fields)))
    for _ in range(3):
        text = _PREFIX.sub("", text, count=1)
    return spoken(cut(text, start) if len(text) > MAX_QUOTE * 2 else text)


def _fields(text: str) -> list[str]:
    """Return the text fields of a JSON record."""
    try:
        record = cast("object", json.loads(text))
    except (ValueError, RecursionError):
        return []
    if not isinstance(record, dict):
        return []
    values = {str(key).lower(): value for key, value in cast("dict[object, object]", record).items()}
    return [str(values[name]) for name in _MESSAGE_FIELDS if isinstance(values.get(name), str) and values[name]]


def _around(lines: list[str], number: int, start: int) -> str:
    """Return the line with its nearest neighbours that have another message, as far as there is room."""
    if len(lines[number]) > MAX_QUOTE:
        return cut(lines[number], start)
    seen = {masked(lines[number][:MAX_COMPARED])}
    wanted: list[int] = []
    for place in (number + 1, number - 1, number + 2, number - 2, number + 3, number - 3):
        if 0 <= place < len(lines) and lines[place].strip() and not _FRAME.match(lines[place]):
            compared = masked(lines[place][:MAX_COMPARED])
            if compared not in seen:
                seen.add(compared)
                wanted.append(place)
    return _quote(lines, number, wanted)


def _quote(lines: Sequence[str], number: int, wanted: Iterable[int]) -> str:
    """Return a line with the `wanted` neighbours in that order, as far as they are adjacent and there is room."""
    first = last = number
    for neighbour in wanted:
        low, high = min(first, neighbour), max(last, neighbour)
        if high - low == last - first + 1 and low >= 0 and high < len(lines):
            if len("\n".join(lines[low : high + 1])) > MAX_QUOTE:
                continue
            first, last = low, high
    return cut("\n".join(lines[first : last + 1]))


def cut(text: str, around: int = 0) -> str:
    """Return at most MAX_QUOTE characters of a text around an offset, verbatim and in whole words if possible."""
    text = text.rstrip()
    if len(text) <= MAX_QUOTE:
        return text
    start = max(0, min(around - MAX_QUOTE // 3, len(text) - MAX_QUOTE))
    part = text[start : start + MAX_QUOTE]
    if start and (space := _SPACE.search(part[:40])):
        part = part[space.end() :]
    return part


def spoken(message: str, words: int = 36) -> str:
    """Return at most `words` words of a message: its beginning (what was tried) and its end (why it failed)."""
    tokens = message.split()
    if len(tokens) <= words:
        return " ".join(tokens)
    head = words * 3 // 5
    return " ".join([*tokens[:head], "…", *tokens[len(tokens) - (words - head - 1) :]])
