"""The correlation of all work on one request: one id in every log line and in every trace.

It is written as a `traceparent` (W3C Trace Context, section 3.2), so that it also says what it is a part of.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

_FORM = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-0[01]")


@dataclass(frozen=True, slots=True)
class Correlation:
    """`trace_id` (32 hexadecimal digits) is the same for all of it, `span_id` (16) names the part that asked for it."""

    trace_id: str
    span_id: str

    def __str__(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-01"


_current: ContextVar[Correlation | None] = ContextVar("correlation", default=None)


def new_correlation() -> Correlation:
    return Correlation(secrets.token_hex(16), secrets.token_hex(8))


def parse_correlation(text: str) -> Correlation | None:
    """Parse the result of `str`; None for anything else."""
    match = _FORM.fullmatch(text)
    return Correlation(match[1], match[2]) if match else None


def current_correlation() -> str:
    """That of the request or task under way, as text; empty outside of any."""
    correlation = _current.get()
    return "" if correlation is None else str(correlation)


@contextmanager
def correlated(correlation: Correlation) -> Generator[None]:
    """Let everything that is done in the block belong to the correlation."""
    token = _current.set(correlation)
    try:
        yield
    finally:
        _current.reset(token)
