"""A table of figures is printed whole, however narrow the terminal is."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from bot.evaluation.report import print_rows

HEADERS = [f"a figure, the {number}th" for number in range(12)]
METHODS = ["bm25", "a_method_with_a_long_name"]


def printed(width: int) -> list[str]:
    rows = [(method, *(f"{number}.{len(method)}" for number in range(12))) for method in METHODS]
    shown = io.StringIO()
    print_rows(Console(width=width, file=shown), ("method", *HEADERS), rows, "Figures")
    return shown.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 400])
def test_no_column_is_cut_and_each_part_names_its_rows(width: int) -> None:
    lines = printed(width)
    text = "\n".join(lines)
    assert max(map(len, lines)) <= width
    assert all(text.count(header) == 1 for header in HEADERS)
    assert all(text.count(f" {number}.{len(method)} ") == 1 for number in range(12) for method in METHODS)
    parts = text.count("method ")
    assert all(text.count(method) == parts for method in METHODS)
    assert text.count("Figures") == 1


def test_a_table_that_fits_stays_one() -> None:
    assert "\n".join(printed(400)).count("bm25") == 1


def test_a_column_that_is_wider_than_the_terminal_is_wrapped() -> None:
    shown = io.StringIO()
    print_rows(Console(width=40, file=shown), ("method", "what it says"), [("bm25", "word " * 30)])
    assert shown.getvalue().count("word") == 30
