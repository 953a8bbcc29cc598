"""`python -m tests.documentation.messages`: write docs/messages.txt, every message that people may read, from the source.

A message is a sentence or a heading of three words or more that the code holds: no docstring, pattern, prompt or sample.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import yaml

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "messages.txt"
AREAS = {
    "Answers": (
        "core/answering",
        "handlers/questions",
        "core/model/messages.py",
        "core/confidence",
        "core/model/badge.py",
    ),
    "Incidents": ("core/incidents", "handlers/incidents", "core/triage", "handlers/feedback"),
    "Causes": ("core/rca",),
    "Chats and the local page": (
        "core/views.py",
        "adapters/slack",
        "adapters/teams",
        "adapters/console",
        "adapters/terminal.py",
        "bot/web",
    ),
    "Commands": ("bot/cli.py", "bot/commands", "bot/evaluation", "bot/__main__.py"),
    "Configuration": ("bot/config", "bot/wiring", "core/model", "adapters/catalogues"),
    "Knowledge sources": ("core/knowledge", "handlers/knowledge", "adapters/sources", "adapters/microsoft.py"),
    "Other systems": ("adapters", "core", "handlers", "bot"),
}
LEFT_OUT = (
    "core/model_calls",
    "core/answering/model_exam.py",
    "bot/sample_company",
)
MIN_WORDS = 3
HEAD = """\
Every text that Plumbline can show to a person, by the part that shows it; {name} stands for what is filled in. This file
follows from the code: `make docs` writes it.
"""

_SENTENCE = re.compile(r"[A-Z“{•`;].*[.!?…:]$")
_CODE = re.compile(r"\(\?|\\[bswd]|\[\^|^\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|<\w)|[\w}]:\{|^[{}\w.:/@-]+$")
_WORD = re.compile(r"[A-Za-z’']{2,}")


def page() -> str:
    """Return the text of docs/messages.txt."""
    seen: set[str] = set()
    parts = [HEAD]
    for area, folders in AREAS.items():
        told: list[str] = []
        for path in _files(folders):
            name = path.relative_to(ROOT).as_posix()
            if not any(name.startswith(each) for each in LEFT_OUT) and name not in seen:
                seen.add(name)
                text = path.read_text(encoding="utf-8")
                told += messages(text) if path.suffix == ".py" else [*of_definition(yaml.safe_load(text))]
        parts.append("\n".join([f"=== {area}", "", *dict.fromkeys(told)]) + "\n")
    return "\n".join(parts)


def _files(folders: tuple[str, ...]) -> Iterator[Path]:
    for folder in folders:
        place = ROOT / folder
        yield from sorted((*place.rglob("*.py"), *place.rglob("definitions/*.yaml"))) if place.is_dir() else [place]


def of_definition(value: Any) -> Iterator[str]:
    """Yield what a definition says to people."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        texts = (str(members.get(name)).replace("${", "{") for name in ("notice", "problem"))
        yield from filter(_SENTENCE.match, texts)
    inner = cast(
        "Iterable[Any]", value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    )
    for each in inner:
        yield from of_definition(each)


def messages(source: str) -> list[str]:
    """Return the messages of a module in their order."""
    nodes = list(ast.walk(ast.parse(source)))
    left_out = {id(each) for node in nodes for each in _no_messages(node)}
    found: list[tuple[int, int, str]] = []
    for node in nodes:
        if id(node) in left_out or not isinstance(node, ast.JoinedStr | ast.Constant):
            continue
        text = " ".join(_text(node).split())
        if _SENTENCE.match(text) and len(_WORD.findall(text)) >= MIN_WORDS and not _CODE.search(text):
            found.append((node.lineno, node.col_offset, text))
    return [text for _, _, text in sorted(found)]


def _no_messages(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the strings below a node that are docstrings, or parts of a larger string, or patterns."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield from (each for each in ast.walk(node) if each is not node and not isinstance(each, ast.FormattedValue))
    elif isinstance(node, ast.Call):
        match node.func:
            case (
                ast.Name("_re" | "frozenset")
                | ast.Attribute(ast.Name("re"), "compile")
                | ast.Attribute(ast.Name("sa"), "text")
            ):
                yield from ast.walk(node)
            case ast.Attribute(_, "split"):
                yield from ast.walk(node.func)
            case _:
                pass


def _text(node: ast.AST) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(map(_text, values))
        case ast.FormattedValue(value=value):
            names = [
                each.id if isinstance(each, ast.Name) else each.attr
                for each in ast.walk(value)
                if isinstance(each, ast.Name | ast.Attribute)
            ]
            return f"{{{names[0] if names else '…'}}}"
        case _:
            return ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
