"""Measure what is stated of ordinary worlds, which have no cause, and of their faulty twins (tests/worlds).

`false` is the share of healthy worlds for which a cause is stated, `strong` the number of them with a strong badge; `right`
the share of twins whose stated cause names the fault, `among` that of those where it is among three with their quotes, and
`pairs` that of the pairs with both right. Each world is read in five ways (tests/worlds/ways.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console

from bot.evaluation.report import cell, print_rows
from tests.worlds.shapes import SHAPES, Shape, world_of
from tests.worlds.ways import WAYS, applies, is_right, observations_of, verdict_on


def run(ways: Sequence[str] = WAYS, only: Sequence[str] = (), seeds: Sequence[int] = (0,)) -> dict[str, Any]:
    """Return the figures of every way, and what was said of each world that went wrong."""
    chosen = [each for each in SHAPES.values() if not only or each.name in only or each.family in only]
    rows = [row for way in ways for shape in chosen for seed in seeds for row in _rows(shape, way, seed)]
    return {
        "measure": "worlds",
        "seeds": list(seeds),
        "ways": {way: _figures([row for row in rows if row["way"] == way]) for way in ways},
        "wrong": [row for row in rows if not row["good"]],
    }


def _rows(shape: Shape, way: str, seed: int) -> Iterator[dict[str, Any]]:
    healthy = None
    for twin in ("", *(name for name, _ in shape.twins)):
        world = world_of(shape.name, twin, seed)
        if not applies(world, way):
            continue
        stated = verdict_on(asyncio.run(observations_of(world, way)))
        right = is_right(world, stated.cause)
        good = right if twin else not stated.cause
        healthy = good if not twin else healthy
        yield {
            "way": way, "shape": shape.name, "family": shape.family, "twin": twin, "good": good, "strong": stated.strong and bool(stated.cause),
            "among": is_right(world, stated.among), "pair": good and bool(healthy), "said": stated.cause,
        }  # fmt: skip


def _figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    healthy, twins = ([row for row in rows if bool(row["twin"]) is faulty] for faulty in (False, True))
    return {
        "healthy": len(healthy),
        "false": _share([not row["good"] for row in healthy]),
        "strong": sum(not row["good"] and row["strong"] for row in healthy),
        "twins": len(twins),
        "right": _share([row["good"] for row in twins]),
        "among": _share([row["among"] for row in twins]),
        "pairs": _share([row["pair"] for row in twins]),
        "strong_right": f"{sum(row['good'] and row['strong'] for row in twins)} of {sum(row['strong'] for row in twins)}",
    }


def _share(values: Sequence[bool]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None


def print_table(figures: Mapping[str, Any], console: Console) -> None:
    keys = ("healthy", "false", "strong", "twins", "right", "among", "pairs")
    rows = [(way, *(cell(row, key) for key in keys), row["strong_right"]) for way, row in figures["ways"].items()]
    print_rows(console, ("way in", *keys, "strong right"), rows, "ordinary worlds and their faulty twins")
    for row in figures["wrong"]:
        console.print(
            f"{row['way']:<8} {row['twin'] or row['shape']}{' !' if row['strong'] else ''}: {row['said'] or '–'}",
            highlight=False,
            markup=False,
        )
