"""Conventions of the code that no linter checks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("bot", "handlers", "core", "adapters")
QUESTION_WORD = re.compile(r"\s*(?:What|Whether|Who|Whose|Where|How|Which|When|Those|These|Of|In|By|If)\b")

BANNED_NAME = re.compile(r"\b_?(?:asked|found|heard|known|said|telling|told|tone)\b")
"""Names of variables, parameters and functions that do not tell what they hold: a noun of the domain does."""


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Return the syntax of a module, which several conventions are about."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@pytest.fixture(scope="module", autouse=True)
def nothing_kept() -> Iterator[None]:
    """Give back the memory of the syntax of all modules."""
    yield
    nodes.cache_clear()


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a module, its classes and its functions, each with its line."""
    for node in nodes(path):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield node.body[0].lineno, text


@pytest.mark.parametrize("package", PACKAGES)
def test_a_docstring_begins_with_a_verb_or_a_noun_and_not_with_a_question_word(package: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, text in docstrings(path)
        if QUESTION_WORD.match(text)
    ]
    assert wrong == []


def test_names_are_nouns_of_the_domain_and_not_banned_participles() -> None:
    """Fields of classes may be stored, so they keep their names."""
    assert {
        path.relative_to(ROOT).as_posix(): names
        for package in (*PACKAGES, "tests/benchmarks")
        for path in sorted((ROOT / package).rglob("*.py"))
        if (names := [f"{line}: {name}" for line, name in bound_names(path) if BANNED_NAME.fullmatch(name)])
    } == {}


def bound_names(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the variables, parameters and functions that a module binds, each with its line; no fields of classes."""
    fields = {
        target
        for node in nodes(path)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in ([statement.target] if isinstance(statement, ast.AnnAssign) else statement.targets)
    }
    for node in nodes(path):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if node not in fields:
                yield node.lineno, name
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case _:
                pass


def test_a_class_name_stands_for_one_concept() -> None:
    """A class whose name begins with an underscore is read in its module alone."""
    places: dict[str, list[str]] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for name in re.findall(r"^class ([A-Z]\w*)", path.read_text(encoding="utf-8"), re.MULTILINE):
                places.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Counts imports within functions and for types too: `TopologicalSorter` names the circle that it meets."""
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}
    TopologicalSorter({name: set(imported(path, frozenset(modules))) for name, path in modules.items()}).prepare()


def imported(path: Path, modules: frozenset[str]) -> Iterator[str]:
    for node in nodes(path):
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
