"""Stretches of a text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar


class Span(Protocol):
    """From `start` (inclusive) to `end` (exclusive)."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


S = TypeVar("S", bound=Span)


def without_overlap(spans: Iterable[S], length: int) -> list[S]:
    """The spans of a text of this length in order, each of those kept that overlaps none given before it."""
    taken = bytearray(length)
    kept = list[S]()
    for span in spans:
        if not any(taken[span.start : span.end]):
            taken[span.start : span.end] = b"\x01" * (span.end - span.start)
            kept.append(span)
    return sorted(kept, key=lambda span: span.start)
