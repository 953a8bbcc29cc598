"""Untrusted text within a prompt."""

from __future__ import annotations

import re

_FENCE = re.compile(r"\s*={3,}\s*")


def quoted(text: str) -> str:
    """The text, in which no line looks like the fence around data: it cannot end its own quotation."""
    return "\n".join("=" if _FENCE.fullmatch(line) else line for line in text.splitlines()).strip()
