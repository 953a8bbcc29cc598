"""A table of figures is printed whole, however narrow the terminal is."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from bot.evaluation.report import print_rows

HEADERS = [f"figure_{number}_with_a_long_name" for number in range(6)]
ROWS = {method: [f"0.{number}{len(method)} [0.10–0.90]" for number in range(6)] for method in ("bm25", "a_long_name")}


@pytest.mark.parametrize("width", [60, 80, 400])
def test_no_header_and_no_figure_is_cut(width: int) -> None:
    shown = io.StringIO()
    rows = [(method, *figures) for method, figures in ROWS.items()]
    print_rows(Console(width=width, file=shown), ("method", *HEADERS), rows, "Figures")
    lines = shown.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    cells = [line.split(sign) for line in lines for sign in "│┃" if sign in line]
    columns = ["".join("".join(column).split()) for column in zip(*cells, strict=True)][1:-1]
    for column, (name, *figures) in zip(columns, zip(("method", *HEADERS), *rows, strict=True), strict=True):
        assert column == name + "".join("".join(figure.split()) for figure in figures)
