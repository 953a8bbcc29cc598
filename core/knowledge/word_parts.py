"""Compare names however they are written: `RouterErrorsHigh`, `router_errors_high`, `router-errors-high`, “Router errors high”."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+|[^\W_]+")


@lru_cache(maxsize=10_000)
def word_parts(name: str) -> tuple[str, ...]:
    """Return the words of a name in lower case, split at case, digits, hyphens, underscores and spaces."""
    return tuple(part.lower() for part in _PART.findall(name))


def holds_run(whole: Sequence[str], run: Sequence[str]) -> bool:
    """Return whether the words of `run` stand next to each other, in their order, in `whole`."""
    length = len(run)
    return any(tuple(whole[start : start + length]) == tuple(run) for start in range(len(whole) - length + 1))
