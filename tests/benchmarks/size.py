"""`python -m tests.benchmarks size`: how much there is of the product, by what it is for.

- *statements* are all statements of Python's grammar, docstrings included.
- *patterns* are regular expressions: calls of `re`, patterns of pydantic's fields, and those of `knowledge.toml`, whose phrases
  in words are none. A pattern that is made of several counts beside them.
- *numbers* are those in the values of modules: each of a table counts, a calculation such as `60 * 60` once. Fitted weights are
  data, in `knowledge.toml` with the command that fits them, and do not count.

A file belongs to the one capability of `budget.toml` whose globs match it.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from core.model.errors import MalformedInput
from tests.adversarial import PACKAGES, ROOT, is_pattern_call

SUFFIXES = {".py", ".toml"}  # of modules, and of knowledge


@dataclass(frozen=True, slots=True)
class Size:
    """The size of one file, or of several."""

    files: int = 0
    statements: int = 0
    patterns: int = 0
    numbers: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(
            self.files + other.files,
            self.statements + other.statements,
            self.patterns + other.patterns,
            self.numbers + other.numbers,
        )


def size_of(path: Path) -> Size:
    """Return the size of a module, or of a file of knowledge in TOML."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        return Size(files=1, patterns=patterns_in_knowledge(tomllib.loads(text)))
    module = ast.parse(text)
    nodes = list(ast.walk(module))
    return Size(
        files=1,
        statements=sum(isinstance(node, ast.stmt) for node in nodes),
        patterns=sum(isinstance(node, ast.Call) and _has_pattern(node) for node in nodes),
        numbers=sum(
            _numbers_in(statement.value)
            for statement in module.body
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None
        ),
    )


def _has_pattern(call: ast.Call) -> bool:
    return is_pattern_call(call) or any(keyword.arg == "pattern" for keyword in call.keywords)


def _numbers_in(node: ast.AST) -> int:
    return 1 if _is_number(node) else sum(map(_numbers_in, ast.iter_child_nodes(node)))


def _is_number(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=bool()):
            return False
        case ast.Constant(value=int() | float()):
            return True
        case ast.UnaryOp(operand=operand):
            return _is_number(operand)
        case ast.BinOp(left=left, right=right):
            return _is_number(left) and _is_number(right)
        case _:
            return False


def patterns_in_knowledge(tables: Mapping[str, Any]) -> int:
    """Return the number of patterns of phrases, of lines of effects, and of sayings about faults."""
    return sum(
        len(row.get("reads", ())) + ("line" in row) + ("pattern" in row)
        for name, rows in tables.items()
        if name != "fitted"
        for row in rows
    )


def capabilities(tables: Mapping[str, Any], root: Path = ROOT) -> dict[str, set[Path]]:
    """Return the files of each capability.

    Raises MalformedInput that names each file without a capability or with several, and each glob that matches nothing.
    """
    product = {path for package in PACKAGES for path in (root / package).rglob("*") if path.suffix in SUFFIXES}
    matches = [
        (name, glob, product & set(root.glob(glob)))
        for name, row in tables["capability"].items()
        for glob in row["files"]
    ]
    problems = [f"{glob} of {name} matches no file." for name, glob, paths in matches if not paths]
    files: dict[str, set[Path]] = {name: set() for name in tables["capability"]}
    for path in sorted(product):
        names = [name for name, _, paths in matches if path in paths]
        if len(names) == 1:
            files[names[0]].add(path)
        else:
            problems.append(f"{path.relative_to(root)} belongs to {' and '.join(names) or 'no capability'}.")
    if problems:
        raise MalformedInput("\n".join(["A file belongs to exactly one capability of budget.toml.", *problems]))
    return files


def run(tables: Mapping[str, Any], root: Path = ROOT) -> dict[str, Any]:
    """Return the sizes of the capabilities and of the product. Raises MalformedInput as `capabilities` does."""
    sizes = {name: sum(map(size_of, paths), Size()) for name, paths in capabilities(tables, root).items()}
    return {
        "measure": "size",
        "capability": {name: asdict(size) for name, size in sizes.items()},
        "product": asdict(sum(sizes.values(), Size())),
    }


def limited(figures: Mapping[str, Any]) -> dict[str, int]:
    """Return the figures that have a budget."""
    statements = {f"capability.{name}.statements": row["statements"] for name, row in figures["capability"].items()}
    return statements | {f"product.{unit}": figures["product"][unit] for unit in ("statements", "patterns", "numbers")}


def print_table(figures: Mapping[str, Any], console: Console) -> None:
    units = [each.name for each in fields(Size)]
    numbers = [Column(unit, f"{figures['product'][unit]:,}", justify="right") for unit in units]
    table = Table(Column("capability", "product"), *numbers, show_footer=True)
    for name, row in sorted(figures["capability"].items(), key=lambda item: -item[1]["statements"]):
        table.add_row(name, *(f"{row[unit]:,}" for unit in units))
    console.print(table)
