"""The budget of the product, `budget.toml`: numbers that only fall.

A number is known by the table and the key under which the file has it, such as `capability.answering.statements`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

BUDGET = Path(__file__).with_name("budget.toml")

_HEADING = re.compile(r"\[(.+)\]")
_NUMBER = re.compile(r"(\w+) = (\d+)")


def tables() -> Mapping[str, Any]:
    """Return the file as it is."""
    return tomllib.loads(BUDGET.read_text(encoding="utf-8"))


def numbers_of(tables: Mapping[str, Any]) -> dict[str, int]:
    """Return the numbers of all tables."""
    return dict(_numbers_of(tables))


def _numbers_of(tables: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, int]]:
    for key, value in tables.items():
        if isinstance(value, Mapping):
            yield from _numbers_of(value, f"{prefix}{key}.")
        elif isinstance(value, int):
            yield prefix + key, value


def excesses(budget: Mapping[str, int], measured: Mapping[str, int]) -> list[str]:
    """Return a sentence for each measured number that is above its budget. One without a budget has 0."""
    return [
        f"{_shown(key, number)}, {number - budget.get(key, 0):,} above the budget."
        for key, number in measured.items()
        if number > budget.get(key, 0)
    ]


def savings(budget: Mapping[str, int], measured: Mapping[str, int]) -> list[str]:
    """Return a sentence for each measured number that is below its budget."""
    return [
        f"{_shown(key, number)}, {budget[key] - number:,} below the budget."
        for key, number in measured.items()
        if number < budget.get(key, 0)
    ]


def _shown(key: str, number: int) -> str:
    table, _, unit = key.rpartition(".")
    return f"{table.removeprefix('capability.')} has {number:,} {unit}"


def lowered(text: str, measured: Mapping[str, int]) -> str:
    """Return the text of a budget in which each number above the measured one is the measured one."""
    lines: list[str] = []
    table = ""
    for line in text.splitlines(keepends=True):
        if heading := _HEADING.match(line):
            table = heading[1]
        elif number := _NUMBER.match(line):
            now = measured.get(f"{table}.{number[1]}", int(number[2]))
            line = f"{number[1]} = {min(now, int(number[2]))}{line[number.end() :]}"  # noqa: PLW2901
        lines.append(line)
    return "".join(lines)


def enforce(measured: Mapping[str, int], out: Console, *, lower: bool) -> None:
    """Print what is above or below the budget, write lower numbers if `lower`, and exit with 1 if any is above."""
    text = BUDGET.read_text(encoding="utf-8")
    budget = numbers_of(tomllib.loads(text))
    above, below = excesses(budget, measured), savings(budget, measured)
    if lower:
        BUDGET.write_text(lowered(text, measured), encoding="utf-8")
    elif below:
        below.append("Run this command with `--lower` to write the lower numbers.")
    if above:
        above.append("Take as much out, or lower the number from which it moved by as much as you raise this one.")
    for sentence in (*below, *above):
        out.print(sentence, soft_wrap=True, highlight=False)
    if above:
        raise typer.Exit(1)
