"""The input and output of evaluations: JSON lines, intervals, and figures as JSON and tables."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.measure import Measurement
from rich.table import Column, Table

from core.confidence.measures import bootstrap
from core.model.errors import MalformedInput

OPENERS: Mapping[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}


def json_lines(path: Path, *fields: str) -> list[dict[str, str]]:
    """Return the objects of a JSON lines file (plain, .gz or .xz), at least one, each with these fields.

    Raises MalformedInput that names the line.
    """
    expected = f"expected a JSON object with {', '.join(fields)} on each line"
    rows: list[Any] = []
    where = str(path)
    try:
        with OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                where = f"{path}, line {number}"
                row: Any = json.loads(line) if line.strip() else None
                rows += [] if row is None else [row]
                if row is not None and not (isinstance(row, dict) and set(fields) <= row.keys()):
                    raise MalformedInput(f"{where}: {expected}.")
    except (OSError, EOFError, lzma.LZMAError, UnicodeDecodeError) as error:
        raise MalformedInput(f"{path} cannot be read: {error}.") from error
    except ValueError as error:
        raise MalformedInput(f"{where}: {expected}: {error}.") from error
    if not rows:
        raise MalformedInput(f"{path} is empty: {expected}.")
    return rows


def write_json(figures: Mapping[str, Any], path: Path | None) -> None:
    """Write the figures to `path` as indented JSON, if there is a path."""
    if path is not None:
        path.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def cell(row: Mapping[str, Any], name: str, form: str = ".2f") -> str:
    """Return a figure for a table: “0.57 [0.47–0.66]” where it has an interval, nothing where it is None or missing."""
    value, interval = row.get(name), row.get(f"{name}_ci")
    if value is None:
        return ""
    shown = format(value, form) if isinstance(value, float) else str(value)
    return f"{shown} [{interval[0]:.2f}–{interval[1]:.2f}]" if interval else shown


def print_rows(console: Console, headers: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> None:
    """Print a table of figures. An empty row is a rule."""
    table = Table(*headers, title=title or None)
    for row in rows:
        if row:
            table.add_row(*row)
        else:
            table.add_section()
    print_whole(table, console)


def print_whole(table: Table, console: Console) -> None:
    """Print a table without truncation. Columns that do not fit follow below, next to the first column again."""
    first, *rest = table.columns
    title, unbounded = table.title, console.options.update(max_width=10_000)
    while rest:
        count = 1
        while (
            count < len(rest)
            and Measurement.get(console, unbounded, _part(table, [first, *rest[: count + 1]])).maximum <= console.width
        ):
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


SEED = 7


def bootstrap_interval(values: Sequence[float], seed: int = SEED) -> list[float]:
    """Return the 95 % percentile bootstrap interval of the mean, as [low, high]."""
    return rounded(bootstrap(np.mean, np.asarray(values, float), seed=seed))


def wilson_interval(held: Sequence[bool]) -> list[float]:
    """Return the 95 % Wilson interval of a share, as [low, high]. `held` has at least one element."""
    from scipy.stats import binomtest

    low, high = binomtest(sum(held), len(held)).proportion_ci(method="wilson")
    return rounded((float(low), float(high)))


def rounded(interval: tuple[float, float]) -> list[float]:
    """Return the interval rounded to four digits."""
    return [round(end, 4) for end in interval]
