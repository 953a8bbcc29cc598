"""Conventions of the code that no linter checks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
QUESTION_WORD = re.compile(r"\s*(?:What|Whether|Who|Whose|Where|How|Which|When|Those|These|Of|In|By|If)\b")


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a module, its classes and its functions, each with its line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield node.body[0].lineno, text


@pytest.mark.parametrize("package", ["bot", "handlers", "core", "adapters"])
def test_a_docstring_begins_with_a_verb_or_a_noun_and_not_with_a_question_word(package: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, text in docstrings(path)
        if QUESTION_WORD.match(text)
    ]
    assert wrong == []


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Counts imports within functions and for types too: `TopologicalSorter` names the circle that it meets."""
    paths = [path for package in ("bot", "handlers", "core", "adapters") for path in (ROOT / package).rglob("*.py")]
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}
    TopologicalSorter({name: set(imported(path, frozenset(modules))) for name, path in modules.items()}).prepare()


def imported(path: Path, modules: frozenset[str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{each.name}" for each in node.names)
            yield from modules & {name if name in modules else node.module for name in names}
        elif isinstance(node, ast.Import):
            yield from modules & {each.name for each in node.names}


def test_no_test_imports_from_another_test() -> None:
    assert [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for name in re.findall(r"^(?:from|import) (tests(?:\.\w+)*\.test_\w+)", path.read_text("utf-8"), re.MULTILINE)
    ] == []
