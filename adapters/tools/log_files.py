"""Log files: `<root>/**/logs/<service>.log`, one record per line. Indented lines continue a record.

A record begins `2026-03-14T09:12:03.412Z LEVEL service message`. Records are sorted by time.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Literal

from adapters.section import Host
from adapters.text_files import open_utf8
from adapters.tools.parts import kept
from adapters.tools.section import Tools
from adapters.tools.service_files import FilesTool, ParsedFiles
from core.model.compute_thread import run_in_reading_thread
from core.model.log_levels import level_named, level_of
from core.ports import LogLine, Partial, TimeWindow

RECORD = re.compile(
    rb"(?:\xef\xbb\xbf)?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)) (\S{1,16}) (\S{1,128}) ?(.*)"
)
MAX_LINE = 8_192  # bytes per line
MAX_RECORD_LINES = 60  # lines per record, such as a stack trace
NEAR = 64 * 1024  # bytes that are scanned instead of bisected
TAIL = 128  # bytes for each wanted record that are read first from the end of the window
MAX_KEPT = 4 * 1024 * 1024  # bytes of a file that is cached; in longer files, the window is found by bisection
ALWAYS = TimeWindow(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


class LogFiles:
    """LogReader over a folder."""

    def __init__(self, name: str, root: Path) -> None:
        self.name = name
        self._files = ParsedFiles(root, (".log",), _whole)

    async def lines(self, service: str, window: TimeWindow, limit: int) -> list[LogLine]:
        paths = await run_in_reading_thread(self._files.of_service, "logs", service)
        parts = [(str(path), run_in_reading_thread(self._lines, path, service, window, limit)) for path in paths]
        records = await kept(self.name, parts)
        return Partial(sorted(records, key=lambda line: line.at)[-limit:], records.gaps)

    def _lines(self, path: Path, service: str, window: TimeWindow, limit: int) -> list[LogLine]:
        if path.stat().st_size <= MAX_KEPT and not self._files.is_growing(path):
            return _within(self._files.content(path), window)[-limit:]
        with open_utf8(path) as file:
            return _last(file, service, window, limit)


def _whole(path: Path) -> list[LogLine]:
    with open_utf8(path) as file:
        return sorted(_records(file, path.stem, ALWAYS), key=lambda line: line.at)


def _within(lines: list[LogLine], window: TimeWindow) -> list[LogLine]:
    first, end = (bisect_left(lines, at, key=lambda line: line.at) for at in (window.start, window.end))
    return lines[first:end]


def _last(file: BinaryIO, service: str, window: TimeWindow, limit: int) -> list[LogLine]:
    """Return the last records within the window, read from its end: the time does not depend on the file's length."""
    begin, end = _position(file, window.start), _position(file, window.end) + NEAR
    size = limit * TAIL + NEAR
    while True:
        if file.seek(max(begin, end - size)):
            file.readline(MAX_LINE)
        records = list(_records(file, service, window))
        if len(records) >= limit or end - size <= begin:
            return records[-limit:]
        size *= 4


def _position(file: BinaryIO, at: datetime) -> int:
    """Return a position at or shortly before the first record at or after a time, by bisection."""
    low, high = 0, file.seek(0, 2)
    while high - low > NEAR:
        middle = (low + high) // 2
        file.seek(middle)
        time = _next_time(file, high)
        if time is None or time >= at:
            high = middle
        else:
            low = middle
    return low


def _next_time(file: BinaryIO, end: int) -> datetime | None:
    """Return the time of the first record that begins after the current position and before `end`."""
    file.readline(MAX_LINE)
    while file.tell() < end and (line := file.readline(MAX_LINE)):
        if match := RECORD.match(line):
            return _time(match)
    return None


def _records(file: BinaryIO, service: str, window: TimeWindow) -> Iterator[LogLine]:
    """Yield the records within the window, starting at the current position."""
    at: datetime | None = None
    level, texts = "", list[str]()
    while line := file.readline(MAX_LINE):
        match = RECORD.match(line)
        if match is None:
            if at and len(texts) < MAX_RECORD_LINES and line[:1].isspace() and line.strip():
                texts.append(_decoded(line).rstrip())
            continue
        if at:
            yield LogLine(service, at, level, "\n".join(texts))
        time = _time(match)
        if time >= window.end:
            return
        at = time if time >= window.start else None
        level, texts = _decoded(match[2]), [_decoded(match[4]).rstrip()]
        level = level_named(level) or level_of({"level": level}, texts[0])
    if at:
        yield LogLine(service, at, level, "\n".join(texts))


def _time(match: re.Match[bytes]) -> datetime:
    return datetime.fromisoformat(match[1].decode("ascii"))


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", errors="replace")


class LogFilesTool(FilesTool):
    kind: Literal["log_files"]
    name: str = "log files"

    def open(self, host: Host) -> Tools:
        return Tools(logs=(LogFiles(self.name, self.path),))
