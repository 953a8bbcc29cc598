"""Metric files in folders: `<root>/**/metrics/<service>.csv` with a header `timestamp,<metric>,…`."""

from __future__ import annotations

import asyncio
import csv
import math
from datetime import datetime
from itertools import islice
from pathlib import Path

from adapters.tools.service_files import files_of
from core.errors import ToolUnavailable
from core.ports import Series, TimeWindow

MAX_METRICS = 200  # columns read of one file
MAX_ROWS = 100_000  # rows read of one file


class MetricFiles:
    """MetricReader over a folder."""

    def __init__(self, name: str, root: Path) -> None:
        self._name = name
        self._root = root

    @property
    def name(self) -> str:
        return self._name

    async def series(self, service: str, window: TimeWindow) -> list[Series]:
        return await asyncio.to_thread(self._series, service, window)

    def _series(self, service: str, window: TimeWindow) -> list[Series]:
        paths = files_of(self._root, "metrics", service, ".csv")
        return [series for path in paths for series in _read(path, service, window)]


def _read(path: Path, service: str, window: TimeWindow) -> list[Series]:
    times: list[datetime] = []
    rows: list[list[str]] = []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file)
            metrics = next(reader, [])[1 : MAX_METRICS + 1]
            for row in islice(reader, MAX_ROWS):
                at = datetime.fromisoformat(row[0]) if row else window.end
                if window.start <= at < window.end:
                    times.append(at)
                    rows.append(row)
    except (OSError, UnicodeDecodeError, csv.Error, ValueError, TypeError) as error:
        raise ToolUnavailable(f"The metrics in {path} cannot be read: {error}.") from error
    if not times:
        return []
    return [
        Series(service, metric, tuple(times), tuple(_number(row, column) for row in rows))
        for column, metric in enumerate(metrics, start=1)
    ]


def _number(row: list[str], column: int) -> float:
    """NaN where the cell is missing, empty or no number."""
    try:
        return float(row[column])
    except (IndexError, ValueError):
        return math.nan
