"""Log files: `<root>/**/logs/<service>.log`, one record per line. Indented lines continue a record.

A record begins `2026-03-14T09:12:03.412Z LEVEL service message`, or has its time near its beginning in another common
form: without a zone, as in syslog (RFC 3164 and 5424), access logs and klog, or in a field of JSON. Records are sorted
by time. Lines without a time are counted.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import BinaryIO, Literal
from zoneinfo import ZoneInfo

from adapters.section import Host
from adapters.text_files import open_utf8
from adapters.tools.section import FilesTool, ParsedFiles, Tools, kept, refuse_gaps
from core.model.findings import Gap, GapReason
from core.model.log_levels import level_named, level_of
from core.model.running import run_in_reading_thread
from core.model.text import counted
from core.ports import LogLine, Partial, TimeWindow

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
MAX_LINE = 8_192  # bytes per line
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
