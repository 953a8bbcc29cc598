"""Prompts for the language model: one text file per prompt, with one typed render function.

Untrusted text is quoted in them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template

from core.model.language_model import ChatMessage

Messages = tuple[ChatMessage, ...]


@cache
def template(name: str) -> Template:
    """Return the template in `core/model_calls/prompts/NAME.txt`.

    Placeholders are written `$word`, a dollar sign `$$`.
    """
    return Template(files("core.model_calls.prompts").joinpath(f"{name}.txt").read_text("utf-8"))


READ_CHARACTERS = 800  # read of a candidate's text

_FENCE = frozenset("=═")
_SHORTEST_FENCE = 3  # characters
_UNSEEN = frozenset({"Cf", "Cc", "Mn"})  # marks, too: a variation selector is one


@dataclass(frozen=True, slots=True)
class Named:
    """A candidate in a prompt: a name that is unique in the prompt, and its text."""

    name: str
    text: str


def quoted(text: str) -> str:
    """Return the text without lines that look like the fence around data, so that it cannot end its own quotation."""
    return "\n".join("=" if _is_fence(line) else line for line in text.splitlines()).strip()


def plain(text: str) -> str:
    """Return the text as some tokenizers read it: without invisible characters, and those of other widths as usual ones."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(sign for sign in unicodedata.normalize("NFKC", text) if unicodedata.category(sign) not in _UNSEEN)


def _is_fence(line: str) -> bool:
    signs = "".join(plain(line).split())
    return len(signs) >= _SHORTEST_FENCE and _FENCE.issuperset(signs)


def beginning(text: str, longest: int = READ_CHARACTERS) -> str:
    """Return at most about `longest` characters of the text, in whole words."""
    return text if len(text) <= longest else f"{text[:longest].rpartition(' ')[0] or text[:longest]} …"


def judged_statements(statements: Sequence[Named]) -> dict[str, str]:
    """Return the statements of a prompt for a judge, and the form of its reply.

    Each statement is the name, with its citation marks; the text is what is nearest to it there.
    """
    listed = "\n".join(
        f"{number}. {quoted(each.name)}\n   Nearest: {quoted(beginning(each.text))}"
        for number, each in enumerate(statements, start=1)
    )
    form = ", ".join(f'"{number}": "…"' for number in range(1, len(statements) + 1))
    return {"statements": quoted(listed), "form": form}
