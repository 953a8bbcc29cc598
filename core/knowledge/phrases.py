"""Phrases: words that a program may write with spaces, hyphens, underscores or as one name."""

from __future__ import annotations

import re

_JOINT = r"[\W_]{0,2}(?:(?:is|was|are|were|has|have|had|been|be|an?|the|any)[\W_]{1,2}){0,2}"
"""Matches what may stand between two words of a phrase."""
_MARKS = {
    "(": "(?:",
    ")": ")",
    "|": "|",
    "…": r"(?:\s\S++){0,4}?",
    "*": r"\s\w{1,40}",
    "{x}": r"[ :=\"'\\]{1,3}(?P<x>[\w./-]{0,252}\w)",  # which may begin like an auxiliary word, as “be-orders” does
    "{n}": r"(?<!\d)(?P<x>\d{1,6})",
}


def pattern_of(phrase: str) -> str:
    """Return the pattern of a phrase, without its beginning and end, to be compiled so that it ignores case.

    `out of memory` also matches `OutOfMemory` and `OUT_OF_MEMORY`, and `disk full` also “the disk is full”: auxiliary
    words may stand between two words. `…` stands for up to four words, `*` for the rest of a word or for a word, `{x}` for
    a name and `{n}` for a number, which is the group `x`, and `(one | the other)` for either.
    """
    pattern, before = "", "|"
    for part in phrase.replace("(", "( ").replace(")", " )").split():
        is_joined = before not in ("(", "|") and part not in (")", "|", "…", "*", "{x}")
        pattern += _JOINT if is_joined else ""
        pattern += _MARKS.get(part) or re.escape(part).replace(r"\*", r"\w{0,40}")
        before = part
    return pattern
