"""Logs, metrics, changes and traces from files under a folder.

Metric files are `<root>/**/metrics/<service>.csv` with a header `timestamp,<metric>,…`.

Change files are `<root>/**/changes.jsonl`, one JSON object per line. Required are `id`, `at`, `kind` and `title`. `service` or
`services` name what a change affects, `revision` its commit or the one it deploys, `commits` all that a deployment ships,
`files` and `diff` what was changed.

Trace files are OpenTelemetry traces, `<root>/**/*.json` or `.jsonl`. A file has a document a line, as the OpenTelemetry
Collector writes them, or documents over several lines, or an array.
https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/

Log files are `<root>/**/logs/<service>.log`, one record per line. Indented lines continue a record.

A record begins `2026-03-14T09:12:03.412Z LEVEL service message`, or has its time near its beginning in another common
form: without a zone, as in syslog (RFC 3164 and 5424), access logs and klog, or in a field of JSON. Records are sorted
by time. Lines without a time are counted.
"""

from __future__ import annotations

import asyncio
import csv
import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice
from pathlib import Path
from typing import Annotated, BinaryIO, Literal, NamedTuple, cast
from zoneinfo import ZoneInfo

from pydantic import (
    AliasChoices,
    AliasGenerator,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)
from pydantic.alias_generators import to_camel
from pydantic_core import from_json

from adapters.http import Items, Moment, typed
from adapters.section import Host
from adapters.text_files import decoded, open_text, open_utf8
from adapters.tools.section import MAX_LINE, FilesTool, ParsedFiles, Tools, clipped, kept, refuse_gaps
from core.model.errors import ToolUnavailable
from core.model.findings import Gap, GapReason
from core.model.log_levels import level_named, level_of
from core.model.running import run_in_reading_thread
from core.model.text import counted, json_text
from core.ports import Change, LogLine, Partial, PartialGraph, Series, TimeWindow

MAX_LINES = 100_000  # per file
NAME = "changes.jsonl"

_Short = Annotated[str, StringConstraints(max_length=500)]
_Long = Annotated[str, StringConstraints(max_length=20_000)]


class _Record(BaseModel):
    id: _Short
    at: Moment
    kind: _Short
    title: _Short
    service: _Short = ""
    services: tuple[_Short, ...] = ()
    author: _Short = ""
    detail: _Long = ""
    files: tuple[_Short, ...] = ()
    url: _Short = ""
    revision: _Short = ""
    commits: tuple[_Short, ...] = ()
    diff: str = ""


class ChangeFiles:
    """ChangeReader over a folder."""

    def __init__(self, name: str, root: Path) -> None:
        self.name = name
        self._files = ParsedFiles(root, (NAME,), _read_changes)

    async def changes(self, window: TimeWindow) -> list[Change]:
        paths = [path for path in await asyncio.to_thread(self._files.paths) if path.name == NAME]
        changes = await kept(self.name, [(str(path), asyncio.to_thread(self._files.content, path)) for path in paths])
        inside = (change for change in changes if window.start <= change.at < window.end)
        return Partial(sorted(inside, key=lambda change: change.at), changes.gaps)


def _read_changes(path: Path) -> list[Change]:
    """Return the changes, and a gap for the first wrong line. Raises ToolUnavailable if no line is right."""
    changes: list[Change] = []
    wrong: list[ToolUnavailable] = []
    with open_text(path) as file:
        for number, line in enumerate(islice(file, MAX_LINES), start=1):
            try:
                changes += [_change(line, path, number)] if line.strip() else []
            except ToolUnavailable as error:
                wrong.append(error)
    if wrong and not changes:
        raise wrong[0]
    more = f"; {len(wrong) - 1} more like it" if len(wrong) > 1 else ""
    return Partial(changes, [Gap("", GapReason.LEFT_OUT, f"{str(wrong[0]).rstrip('.')}{more}")] if wrong else [])


def _change(line: str, path: Path, number: int) -> Change:
    try:
        record = _Record.model_validate_json(json_text(line))
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]["msg"]
        raise ToolUnavailable(
            f"Line {number} of {path} is not a change record: {problem}; correct or remove it."
        ) from error
    return clipped(Change(**record.model_dump()))


class ChangeFilesTool(FilesTool):
    kind: Literal["change_files"]
    name: str = "change files"

    def open(self, host: Host) -> Tools:
        return Tools(changes=(ChangeFiles(self.name, self.path),))


MAX_METRICS = 200  # columns per file
MAX_ROWS = 100_000  # rows per file


class MetricFiles:
    """MetricReader over a folder."""

    def __init__(self, name: str, root: Path) -> None:
        self.name = name
        self._files = ParsedFiles(root, (".csv",), _read_metrics)

    async def series(self, service: str, window: TimeWindow) -> list[Series]:
        paths = await asyncio.to_thread(self._files.of_service, "metrics", service)
        parts = [(str(path), asyncio.to_thread(self._within, path, service, window)) for path in paths]
        return await kept(self.name, parts)

    def _within(self, path: Path, service: str, window: TimeWindow) -> list[Series]:
        times, columns, wrong = self._files.content(path)
        cut = slice(bisect_left(times, window.start), bisect_left(times, window.end))
        shown = times[cut]
        return Partial(
            (Series(service, metric, shown, values[cut]) for metric, values in columns.items() if shown),
            [Gap("", GapReason.LEFT_OUT, wrong)] if wrong else (),
        )


def _read_metrics(path: Path) -> tuple[tuple[datetime, ...], dict[str, tuple[float, ...]], str]:
    """Return the times in order, the values of each metric at those times, and what is wrong with other rows.

    Raises ToolUnavailable if no row has a time.
    """
    rows: list[tuple[datetime, list[str]]] = []
    wrong: list[str] = []
    with open_text(path, newline="") as file:
        reader = csv.reader(file)
        try:
            metrics = next(reader, [])[1 : MAX_METRICS + 1]
            for row in filter(None, islice(reader, MAX_ROWS)):
                try:
                    rows.append((_metric_time(row[0]), row))
                except ValueError as error:
                    wrong.append(f"line {reader.line_num} of {path}: {error}")
        except csv.Error as error:
            raise ToolUnavailable(f"The metrics in {path} cannot be read: {error}.") from error
    if wrong and not rows:
        raise ToolUnavailable(f"The metrics in {path} cannot be read: {wrong[0]}.")
    rows.sort(key=lambda timed: timed[0])
    columns = {metric: tuple(_number(row, column) for _, row in rows) for column, metric in enumerate(metrics, start=1)}
    return tuple(at for at, _ in rows), columns, f"{len(wrong)} rows, first {wrong[0]}" if wrong else ""


def _metric_time(cell: str) -> datetime:
    at = datetime.fromisoformat(cell)
    if at.tzinfo is None:
        raise ValueError(f"the time {cell[:40]} has no zone")
    return at


def _number(row: list[str], column: int) -> float:
    """Return the number in a cell; NaN if it is missing, empty or invalid."""
    try:
        return float(row[column])
    except (IndexError, ValueError):
        return math.nan


class MetricFilesTool(FilesTool):
    kind: Literal["metric_files"]
    name: str = "metric files"

    def open(self, host: Host) -> Tools:
        return Tools(metrics=(MetricFiles(self.name, self.path),))


SUFFIXES = (".json", ".jsonl")
MAX_FILE = 64 * 1024 * 1024  # bytes; of a longer file, the last ones are read
MAX_FILES = 200
SERVICE = "service.name"  # attribute of a resource, by OpenTelemetry's semantic conventions
LATEST = 253_402_300_799 * 10**9  # the last nanosecond of datetime's years that is a whole second
STRING = ("stringValue", "string_value")
SPANS = (
    "resourceSpans",
    "resource_spans",
    "batches",
    AliasPath("trace", "resourceSpans"),
    AliasPath("trace", "batches"),
)
"""Names of the list of spans: OTLP's, and those of Grafana Tempo."""
_DOCUMENT = re.compile(rb"\r?\n(?=[{\[])")  # the lines within a document are indented


class _Otlp(BaseModel):
    """A message of OTLP, with names as in JSON or as in its protocol definition."""

    model_config = ConfigDict(
        alias_generator=AliasGenerator(validation_alias=lambda name: AliasChoices(to_camel(name), name))
    )


class _Attribute(_Otlp):
    key: str
    value: str = Field("", validation_alias=AliasChoices(*(AliasPath("value", each) for each in STRING)))


class _Span(_Otlp):
    trace_id: str
    span_id: str
    parent_span_id: str | None = None
    start_time_unix_nano: int = Field(0, ge=0, le=LATEST)


class _Scope(_Otlp):
    spans: Items[_Span] = []


class _ResourceSpans(_Otlp):
    attributes: Items[_Attribute] = Field([], validation_alias=AliasPath("resource", "attributes"))
    scope_spans: Items[_Scope] = []


class _Traces(_Otlp):
    resource_spans: Items[_ResourceSpans] = Field(validation_alias=AliasChoices(*SPANS))


class _Call(NamedTuple):
    """The service that was called, and the one that called it, empty if none is known."""

    at: datetime
    caller: str
    service: str


class TraceFiles:
    """DependencyReader over a folder.

    A span whose parent belongs to another service is a call by that service.
    """

    def __init__(self, name: str, root: Path) -> None:
        self.name = name
        self._files = ParsedFiles(root, SUFFIXES, _read_traces)

    async def dependencies(self, window: TimeWindow) -> PartialGraph:
        paths = (await asyncio.to_thread(self._files.paths))[-MAX_FILES:]
        calls = await kept(self.name, [(str(path), asyncio.to_thread(self._within, path, window)) for path in paths])
        return PartialGraph(graph_of((call.caller, call.service) for call in calls), calls.gaps)

    async def check(self) -> None:
        """Raise ToolUnavailable if the folder does not exist, or a file in it cannot be read or holds no traces."""
        refuse_gaps((await self.dependencies(ALWAYS)).gaps)

    def _within(self, path: Path, window: TimeWindow) -> list[_Call]:
        calls = self._files.content(path)
        return Partial((call for call in calls if window.start <= call.at < window.end), calls.gaps)


def _read_traces(path: Path) -> Partial[_Call]:
    """Return the calls in a file, with a gap for what in it is no trace."""
    values = (each for value in _values(path) for each in (value if isinstance(value, list) else [value]))
    documents = typed(cast("Iterator[object]", values), _Traces.model_validate)
    spans = [each for traces in documents for each in _spans(traces)]
    service_of = {(span.trace_id, span.span_id): service for service, span in spans}
    calls = [
        _Call(
            datetime.fromtimestamp(span.start_time_unix_nano / 1e9, UTC),
            service_of.get((span.trace_id, span.parent_span_id or ""), ""),
            service,
        )
        for service, span in spans
    ]
    if spans or not (documents or documents.gaps):
        return Partial(calls, documents.gaps)
    return Partial(gaps=[Gap("", GapReason.LEFT_OUT, f"no span with a {SERVICE} in it; expected OpenTelemetry's JSON")])


def _values(path: Path) -> Iterator[object]:
    """Yield the JSON values in a file, and None for each that cannot be read."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - MAX_FILE))
        text = json_text(decoded(file.read(MAX_FILE))).encode("utf-8", "replace")
    whole = _value(text)
    for document in [] if whole is not None else _DOCUMENT.split(text):
        value = _value(document)
        yield from [value] if value is not None else map(_value, filter(bytes.strip, document.splitlines()))
    yield from [whole] if whole is not None else []


def _value(text: bytes) -> object:
    try:
        return from_json(text.rstrip(b", \t\r\n"))  # a line may be one of an array that was cut
    except ValueError:
        return None


def _spans(traces: _Traces) -> Iterator[tuple[str, _Span]]:
    for resource in traces.resource_spans:
        if service := next((each.value for each in resource.attributes if each.key == SERVICE), ""):
            yield from ((service, span) for scope in resource.scope_spans for span in scope.spans)


def graph_of(calls: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the services that each caller calls, sorted by name. Calls of a service to itself are left out."""
    graph: dict[str, set[str]] = {}
    for caller, callee in calls:
        if caller and callee and caller != callee:
            graph.setdefault(caller, set()).add(callee)
    return {caller: tuple(sorted(callees)) for caller, callees in sorted(graph.items())}


class TraceFilesTool(FilesTool):
    kind: Literal["trace_files"]
    name: str = "trace files"

    def open(self, host: Host) -> Tools:
        return Tools(graphs=(TraceFiles(self.name, self.path),))


_CLOCK = r"(?P<clock>\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)"
_ZONE = r"(?P<zone> ?[+-]\d\d:?\d\d|Z| UTC)?"
_TIMES = tuple(
    re.compile(form)
    for form in (
        rf"(?P<year>\d{{4}})[-/](?P<month>\d\d)[-/](?P<day>\d\d)[T ]{_CLOCK}{_ZONE}",
        rf"(?P<day>\d\d)[/ ](?P<month>[A-Z][a-z]{{2}})[/ ](?P<year>\d{{4}})[: ]{_CLOCK}{_ZONE}",
        rf"(?P<month>[A-Z][a-z]{{2}}) {{1,2}}(?P<day>\d{{1,2}}) {_CLOCK}(?: (?P<year>\d{{4}})\b)?",
        r"\"(?:ts?|\w{0,40}[tT]ime\w{0,40})\"\s{0,2}:\s{0,2}\"?(?P<epoch>[1-3]\d{9})\.?(?P<part>\d{0,9})\b",
        rf"\b[DIWEF](?P<month>\d\d)(?P<day>\d\d) {_CLOCK}",
    )
)
_MONTHS = {name: number for number, name in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}
HEAD = 200  # characters of a line that contain its time
UNREAD = "{lines} without a time that is understood"
MAX_RECORD_LINES = 60  # lines per record, such as a stack trace
NEAR = 64 * 1024  # bytes that are scanned instead of bisected
TAIL = 128  # bytes for each wanted record that are read first from the end of the window
MAX_KEPT = 4 * 1024 * 1024  # bytes of a file that is cached; in longer files, the window is found by bisection
CHECKED = 1_000  # records of a long file that a check reads
ALWAYS = TimeWindow(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


@dataclass(slots=True)
class _Reading:
    """The reading of a file: a time without a zone is in `zone`, one without a year is the last before `latest`.

    `unread` holds, for each line that is no part of a record, the time of the record above it; None if there is none.
    """

    service: str
    zone: tzinfo
    latest: datetime
    unread: list[datetime | None] = field(default_factory=list[datetime | None])

    def gaps(self, window: TimeWindow) -> list[Gap]:
        unread = sum(at is None or window.start <= at < window.end for at in self.unread)
        return [Gap("", GapReason.LEFT_OUT, UNREAD.format(lines=counted(unread, "line")))] if unread else []


class LogFiles:
    """LogReader over a folder."""

    def __init__(self, name: str, root: Path, zone: tzinfo = UTC) -> None:
        """Create the reader. `zone` is that of times that name none."""
        self.name = name
        self._zone = zone
        self._files = ParsedFiles(root, (".log",), self._whole)

    async def lines(self, service: str, window: TimeWindow, limit: int) -> list[LogLine]:
        paths = await run_in_reading_thread(self._files.of_service, "logs", service)
        parts = [(str(path), run_in_reading_thread(self._lines, path, window, limit)) for path in paths]
        records = await kept(self.name, parts)
        return Partial(sorted(records, key=lambda line: line.at)[-limit:], records.gaps)

    async def check(self) -> None:
        """Raise ToolUnavailable if the folder does not exist, or a line of a file is no part of a record."""
        paths = [each for each in await run_in_reading_thread(self._files.paths) if each.parent.name == "logs"]
        parts = [(str(path), run_in_reading_thread(self._lines, path, ALWAYS, CHECKED)) for path in paths]
        refuse_gaps((await kept(self.name, parts)).gaps)

    def _lines(self, path: Path, window: TimeWindow, limit: int) -> Partial[LogLine]:
        if path.stat().st_size <= MAX_KEPT and not self._files.is_growing(path):
            records, reading = self._files.content(path)
            return Partial(_within(records, window)[-limit:], reading.gaps(window))
        reading = self._reading(path)
        with open_utf8(path) as file:
            return Partial(_last(file, reading, window, limit), reading.gaps(window))

    def _whole(self, path: Path) -> tuple[list[LogLine], _Reading]:
        reading = self._reading(path)
        with open_utf8(path) as file:
            return sorted(_records(file, reading, ALWAYS), key=lambda line: line.at), reading

    def _reading(self, path: Path) -> _Reading:
        written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return _Reading(path.stem, self._zone, written + timedelta(days=1))


def _within(lines: list[LogLine], window: TimeWindow) -> list[LogLine]:
    first, end = (bisect_left(lines, at, key=lambda line: line.at) for at in (window.start, window.end))
    return lines[first:end]


def _last(file: BinaryIO, reading: _Reading, window: TimeWindow, limit: int) -> list[LogLine]:
    """Return the last records within the window, read from its end: the time does not depend on the file's length."""
    begin, end = _position(file, reading, window.start), _position(file, reading, window.end) + NEAR
    size = limit * TAIL + NEAR
    while True:
        reading.unread.clear()
        if file.seek(max(begin, end - size)):
            file.readline(MAX_LINE)
        records = list(_records(file, reading, window))
        if len(records) >= limit or end - size <= begin:
            return records[-limit:]
        size *= 4


def _position(file: BinaryIO, reading: _Reading, at: datetime) -> int:
    """Return a position at or shortly before the first record at or after a time, by bisection."""
    low, high = 0, file.seek(0, 2)
    while high - low > NEAR:
        middle = (low + high) // 2
        file.seek(middle)
        time = _next_time(file, reading, high)
        if time is None or time >= at:
            high = middle
        else:
            low = middle
    return low


def _next_time(file: BinaryIO, reading: _Reading, end: int) -> datetime | None:
    """Return the time of the first record that begins after the current position and before `end`."""
    file.readline(MAX_LINE)
    while file.tell() < end and (line := _line(file)):
        if stamped := _stamped(line, reading):
            return stamped[0]
    return None


def _records(file: BinaryIO, reading: _Reading, window: TimeWindow) -> Iterator[LogLine]:
    """Yield the records within the window, starting at the current position.

    A line that is not indented continues a record only near indented ones, as in a stack trace.
    """
    at: datetime | None = None
    rest, texts, waiting, is_trace = "", list[str](), list[str](), False
    while True:
        line = _line(file)
        stamped = _stamped(line, reading)
        if line and stamped is None:
            is_trace = is_trace or (line[:1].isspace() and bool(line.strip()))
            waiting += [_decoded(line).rstrip()] if line.strip() else []
            if is_trace:
                texts += waiting[: MAX_RECORD_LINES - 1 - len(texts)] if at else []
                waiting.clear()
            continue
        reading.unread += [at] * len(waiting)
        if at and at >= window.start:
            level, message = _entry(rest, reading.service)
            yield LogLine(reading.service, at, level, "\n".join((message, *texts)))
        if stamped is None or stamped[0] >= window.end:
            return
        at, rest = stamped
        texts, waiting, is_trace = [], [], False


def _line(file: BinaryIO) -> bytes:
    """Return the beginning of the next line; empty at the end."""
    line = rest = file.readline(MAX_LINE)
    while rest and not rest.endswith(b"\n"):
        rest = file.readline(MAX_LINE)
    return line


def _stamped(line: bytes, reading: _Reading) -> tuple[datetime, str] | None:
    """Return the time of a record, and what follows it if it comes first, or else the whole line; None for other lines.

    In JSON, it is a field of its own.
    """
    text = _decoded(line).removeprefix("\ufeff").rstrip()
    is_json = text.startswith("{")
    matches = (match for form in _TIMES for match in form.finditer(text, 0, len(text) if is_json else HEAD))
    for match in () if line[:1].isspace() else matches:
        is_field = '"' in (match[0][0], text[match.start() - 1])
        if (is_field or not is_json) and (at := _time(match.groupdict(), reading)):
            begins = match[0][0].isdigit() and not text[: match.start()].strip("[")
            return at, text[match.end() :].lstrip("] ") if begins else text
    return None


def _time(parts: Mapping[str, str | None], reading: _Reading) -> datetime | None:
    month, year = str(parts.get("month")), parts.get("year") or reading.latest.year
    written = f"{year}-{_MONTHS.get(month, month):0>2}-{parts.get('day') or '':0>2}T{parts.get('clock')}"
    try:
        if epoch := parts.get("epoch"):
            return datetime.fromtimestamp(float(f"{epoch}.{parts['part']}"), UTC)
        at = datetime.fromisoformat(written + (parts.get("zone") or "").strip().replace("UTC", "Z"))
        at = (at if at.tzinfo else at.replace(tzinfo=reading.zone)).astimezone(UTC)
        return at if parts.get("year") or at <= reading.latest else at.replace(year=at.year - 1)
    except ValueError:
        return None


def _entry(rest: str, service: str) -> tuple[str, str]:
    """Return the level and the message of a record, whose time may be followed by its level and its service."""
    first, named, message = (*rest.split(" ", 2), "", "")[:3]
    if named == service:
        return level_named(first) or level_of({"level": first}, message), message
    level = level_named(first) if len(first) > 1 and first.isupper() else ""
    return (level, rest[len(first) :].strip()) if level else (level_of({}, rest), rest)


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", errors="replace")


class LogFilesTool(FilesTool):
    """Log files. `timezone` is that of times that name no zone."""

    kind: Literal["log_files"]
    name: str = "log files"
    timezone: ZoneInfo = ZoneInfo("UTC")

    def open(self, host: Host) -> Tools:
        return Tools(logs=(LogFiles(self.name, self.path, self.timezone),))
