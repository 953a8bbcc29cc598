"""Output of figures as JSON and tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Column, Table


def write_json(figures: Mapping[str, Any], path: Path | None) -> None:
    """Write the figures to `path` as indented JSON, if there is a path."""
    if path is not None:
        path.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def print_whole(table: Table, console: Console) -> None:
    """Print a table without truncation. Columns that do not fit follow below, next to the first column again."""
    first, *rest = table.columns
    title = table.title
    while rest:
        count = 1
        while count < len(rest) and _width(_part(table, [first, *rest[: count + 1]]), console) <= console.width:
            count += 1
        part, rest = _part(table, [first, *rest[:count]]), rest[count:]
        part.title, title = title, None
        console.print(part)


def _part(table: Table, columns: Sequence[Column]) -> Table:
    part = Table()
    for column in columns:
        part.add_column(column.header, justify=column.justify)
    for row, cells in zip(table.rows, zip(*(column.cells for column in columns), strict=True), strict=True):
        part.add_row(*cells, end_section=row.end_section)
    return part


def _width(table: Table, console: Console) -> int:
    """Return the width of the table without wrapped cells."""
    return Measurement.get(console, console.options.update(max_width=10_000), table).maximum
