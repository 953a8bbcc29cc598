"""Quotation of untrusted text within a prompt."""

from __future__ import annotations

import re
from dataclasses import dataclass

READ_CHARACTERS = 800  # read of a candidate's text

_FENCE = re.compile(r"\s*={3,}\s*")


@dataclass(frozen=True, slots=True)
class Named:
    """A candidate in a prompt: a name that is unique in the prompt, and its text."""

    name: str
    text: str


def quoted(text: str) -> str:
    """Return the text without lines that look like the fence around data, so that it cannot end its own quotation."""
    return "\n".join("=" if _FENCE.fullmatch(line) else line for line in text.splitlines()).strip()


def beginning(text: str, longest: int = READ_CHARACTERS) -> str:
    """Return at most about `longest` characters of the text, in whole words."""
    if len(text) <= longest:
        return text
    return f"{text[:longest].rpartition(' ')[0] or text[:longest]} …"
