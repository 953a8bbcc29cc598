"""Monitoring tools that say what they were given."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from core.model.errors import ToolUnavailable
from core.ports import Change, LogLine, Series, TimeWindow, Tool


class FakeLogReader:
    """Holds log records."""

    def __init__(self, lines: Sequence[LogLine] = (), name: str = "logs") -> None:
        self.name = name
        self.asked: list[str] = []  # services, in order
        self._lines = sorted(lines, key=lambda line: line.at)

    async def lines(self, service: str, window: TimeWindow, limit: int) -> list[LogLine]:
        self.asked.append(service)
        found = [line for line in self._lines if line.service == service and window.start <= line.at < window.end]
        return found[-limit:]


class FakeMetricReader:
    """Holds series."""

    def __init__(self, series: Sequence[Series] = (), name: str = "metrics") -> None:
        self.name = name
        self._series = series

    async def series(self, service: str, window: TimeWindow) -> list[Series]:
        cut = [_within(series, window) for series in self._series if series.service == service]
        return [series for series in cut if series.times]


class FakeChangeReader:
    """Holds changes."""

    def __init__(self, changes: Sequence[Change] = (), name: str = "changes") -> None:
        self.name = name
        self._changes = sorted(changes, key=lambda change: change.at)

    async def changes(self, window: TimeWindow) -> list[Change]:
        return [change for change in self._changes if window.start <= change.at < window.end]


@dataclass
class FakeToolbox:
    """Offers what it was given, or fails."""

    name: str
    offers: list[Tool] = field(default_factory=list[Tool])
    fails: bool = False
    asked: list[tuple[Sequence[str], TimeWindow]] = field(default_factory=list)

    async def tools(self, services: Sequence[str], window: TimeWindow) -> list[Tool]:
        self.asked.append((services, window))
        if self.fails:
            raise ToolUnavailable("It is down.")
        return self.offers


class BrokenTool:
    """Every reader at once, and none of them answers."""

    def __init__(self, name: str = "broken") -> None:
        self.name = name

    async def lines(self, service: str, window: TimeWindow, limit: int) -> list[LogLine]:
        raise ToolUnavailable("The system is down.")

    async def series(self, service: str, window: TimeWindow) -> list[Series]:
        raise ToolUnavailable("The system is down.")

    async def changes(self, window: TimeWindow) -> list[Change]:
        raise ToolUnavailable("The system is down.")


class SilentTool(BrokenTool):
    """A log reader that takes the question and never answers."""

    async def lines(self, service: str, window: TimeWindow, limit: int) -> list[LogLine]:
        await asyncio.Event().wait()
        return []


def _within(series: Series, window: TimeWindow) -> Series:
    points = [
        (at, value) for at, value in zip(series.times, series.values, strict=True) if window.start <= at < window.end
    ]
    return Series(series.service, series.metric, tuple(at for at, _ in points), tuple(value for _, value in points))
