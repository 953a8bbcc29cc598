"""Metric files: `<root>/**/metrics/<service>.csv` with a header `timestamp,<metric>,…`."""

from __future__ import annotations

import asyncio
import csv
import math
from bisect import bisect_left
from datetime import datetime
from itertools import islice
from pathlib import Path

from adapters.text_files import open_text
from adapters.tools.service_files import FolderFiles
from core.model.errors import ToolUnavailable
from core.ports import Series, TimeWindow

MAX_METRICS = 200  # columns per file
MAX_ROWS = 100_000  # rows per file


class MetricFiles:
    """MetricReader over a folder."""

    def __init__(self, name: str, root: Path) -> None:
        self.name = name
        self._files = FolderFiles(root, (".csv",), _read)

    async def series(self, service: str, window: TimeWindow) -> list[Series]:
        return await asyncio.to_thread(self._series, service, window)

    def _series(self, service: str, window: TimeWindow) -> list[Series]:
        found: list[Series] = []
        for path in self._files.of_service("metrics", service):
            try:
                times, columns = self._files.content(path)
                first, end = bisect_left(times, window.start), bisect_left(times, window.end)
            except (OSError, UnicodeDecodeError, csv.Error, ValueError, TypeError) as error:
                raise ToolUnavailable(f"The metrics in {path} cannot be read: {error}.") from error
            if first < end:
                cut = slice(first, end)
                found += [Series(service, metric, times[cut], values[cut]) for metric, values in columns.items()]
        return found


def _read(path: Path) -> tuple[tuple[datetime, ...], dict[str, tuple[float, ...]]]:
    """Return the times in order, and the values of each metric at those times."""
    with open_text(path, newline="") as file:
        reader = csv.reader(file)
        metrics = next(reader, [])[1 : MAX_METRICS + 1]
        rows = [(datetime.fromisoformat(row[0]), row) for row in islice(reader, MAX_ROWS) if row]
    rows.sort(key=lambda timed: timed[0])
    columns = {metric: tuple(_number(row, column) for _, row in rows) for column, metric in enumerate(metrics, start=1)}
    return tuple(at for at, _ in rows), columns


def _number(row: list[str], column: int) -> float:
    """Return the number in a cell; NaN if it is missing, empty or invalid."""
    try:
        return float(row[column])
    except (IndexError, ValueError):
        return math.nan
