"""A paragraph → its sentences."""

from __future__ import annotations

import re

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*")


def sentences(text: str) -> list[str]:
    """The sentences in order, as they are written; a text without an end mark is one."""
    return _SENTENCE_END.split(text)
