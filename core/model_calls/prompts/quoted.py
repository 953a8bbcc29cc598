"""Quotation of untrusted text within a prompt."""

from __future__ import annotations

import re

_FENCE = re.compile(r"\s*={3,}\s*")


def quoted(text: str) -> str:
    """Return the text without lines that look like the fence around data, so that it cannot end its own quotation."""
    return "\n".join("=" if _FENCE.fullmatch(line) else line for line in text.splitlines()).strip()
