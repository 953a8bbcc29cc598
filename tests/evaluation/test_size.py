"""The size of the product: what counts as a statement, a regular expression and a number, and which files belong together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.model.errors import MalformedInput
from tests.benchmarks.size import Size, capabilities, limited, run, size_of


def size(path: Path, text: str) -> Size:
    path.write_text(text)
    return size_of(path)


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("", 0),
        ("# a comment\n", 0),
        ("a = 1; b = 2\n", 2),
        ('def f():\n    """Return nothing."""\n    return None\n', 3),
        ("if a:\n    b()\nelif c:\n    d()\nelse:\n    e()\n", 5),
        ("match a:\n    case 1:\n        b()\n", 2),
        ("f(\n    a,\n    [b for b in c],\n)\n", 1),
    ],
)
def test_every_statement_counts_however_it_is_laid_out(tmp_path: Path, text: str, statements: int) -> None:
    assert size(tmp_path / "a.py", text).statements == statements


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        ("import re\nA = re.compile('a')\n", 1),
        ("def f(text):\n    return re.sub('a', 'b', text) or re.search('c', text)\n", 2),
        ("class A:\n    a: Annotated[str, Field(pattern='^a$')]\n", 1),
        ("A = regex.compile('a')\n", 1),
        ("A = re.escape('a')\nB = A.search('b')\nC: re.Pattern[str]\n", 0),
    ],
)
def test_a_regular_expression_counts_where_it_is_made(tmp_path: Path, text: str, patterns: int) -> None:
    assert size(tmp_path / "a.py", text).patterns == patterns


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("A = 3\nB: float = -0.5\n", 2),
        ("A, B = 1, 2\n", 2),
        ("A = 60 * 60\n", 1),
        ("A = {'a': 0.1, 'b': (0.2, 0.3)}\n", 3),
        ("A = timedelta(days=2)\n", 1),
        ("A = True\nB = None\nC = '3'\n", 0),
        ("def f(a=3):\n    return 4\n\n\nclass A:\n    b: int = 5\n", 0),
    ],
)
def test_a_number_counts_in_the_value_of_a_module(tmp_path: Path, text: str, numbers: int) -> None:
    assert size(tmp_path / "a.py", text).numbers == numbers


def test_the_patterns_of_knowledge_count_and_its_words_do_not(tmp_path: Path) -> None:
    (tmp_path / "knowledge.toml").write_text(
        """
        phrase = [{ says = "disk full", pattern = "[a-z]full" }, { says = "no space left" }]
        effect = [{ line = "a|b" }, { has = "cpu" }]
        fault = [{ reads = [["log", "(?P<x>a)", "{x}"]], says = [["log", "b", "c"]] }]
        """
    )
    assert size_of(tmp_path / "knowledge.toml") == Size(1, 0, 3, 0)


def budget(**globs: list[str]) -> dict[str, Any]:
    return {"capability": {name: {"files": files} for name, files in globs.items()}}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("core/a.py", "core/deep/b.py", "handlers/c.py", "handlers/data.toml", "handlers/page.html"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_every_file_belongs_to_the_capability_that_names_it(root: Path) -> None:
    found = capabilities(budget(first=["core/*.py", "handlers/*"], second=["core/deep/**/*.py"]), root)
    assert found == {
        "first": {root / "core/a.py", root / "handlers/c.py", root / "handlers/data.toml"},
        "second": {root / "core/deep/b.py"},
    }


def test_a_file_of_no_capability_is_refused(root: Path) -> None:
    with pytest.raises(MalformedInput, match=r"core/deep/b\.py belongs to no capability\."):
        capabilities(budget(first=["core/*.py", "handlers/*"]), root)


def test_a_file_of_two_capabilities_is_refused(root: Path) -> None:
    with pytest.raises(MalformedInput, match=r"core/a\.py belongs to first and second\."):
        capabilities(budget(first=["core/**/*.py", "handlers/*"], second=["core/a.py"]), root)


def test_a_glob_that_matches_nothing_is_refused(root: Path) -> None:
    with pytest.raises(MalformedInput, match=r"core/gone\.py of first matches no file\."):
        capabilities(budget(first=["core/**/*.py", "handlers/*", "core/gone.py"]), root)


def test_the_size_of_the_product_is_that_of_its_capabilities(root: Path) -> None:
    (root / "core/a.py").write_text("A = 3\n")
    (root / "handlers/c.py").write_text("import re\nB = re.compile('b')\n")
    figures = run(budget(first=["core/**/*.py"], second=["handlers/*"]), root)
    assert figures["product"] == {"files": 4, "statements": 3, "patterns": 1, "numbers": 1}
    assert limited(figures) == {
        "capability.first.statements": 1,
        "capability.second.statements": 2,
        "product.statements": 3,
        "product.patterns": 1,
        "product.numbers": 1,
    }
