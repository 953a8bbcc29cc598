"""Metric files: `<root>/**/metrics/<service>.csv` with a header `timestamp,<metric>,…`."""

from __future__ import annotations

import asyncio
import csv
import math
from bisect import bisect_left
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Literal

from adapters.section import Host
from adapters.text_files import open_text
from adapters.tools.section import FilesTool, ParsedFiles, Tools, kept
from core.model.errors import ToolUnavailable
from core.model.findings import Gap, GapReason
from core.ports import Partial, Series, TimeWindow

MAX_METRICS = 200  # columns per file
MAX_ROWS = 100_000  # rows per file


class MetricFiles:
    """MetricReader over a folder."""

    def __init__(self, name: str, root: Path) -> None:
        self.name = name
        self._files = ParsedFiles(root, (".csv",), _read)

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


def _read(path: Path) -> tuple[tuple[datetime, ...], dict[str, tuple[float, ...]], str]:
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
                    rows.append((_time(row[0]), row))
                except ValueError as error:
                    wrong.append(f"line {reader.line_num} of {path}: {error}")
        except csv.Error as error:
            raise ToolUnavailable(f"The metrics in {path} cannot be read: {error}.") from error
    if wrong and not rows:
        raise ToolUnavailable(f"The metrics in {path} cannot be read: {wrong[0]}.")
    rows.sort(key=lambda timed: timed[0])
    columns = {metric: tuple(_number(row, column) for _, row in rows) for column, metric in enumerate(metrics, start=1)}
    return tuple(at for at, _ in rows), columns, f"{len(wrong)} rows, first {wrong[0]}" if wrong else ""


def _time(cell: str) -> datetime:
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
