"""Correlation ids that connect all log lines and traces of one request.

The format is `traceparent` (W3C Trace Context, section 3.2), which also names the parent.
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
    """A correlation.

    `trace_id` (32 hex digits) is shared by all work; `span_id` (16) identifies the requesting part.
    """

    trace_id: str
    span_id: str

    def __str__(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-01"


_current: ContextVar[Correlation | None] = ContextVar("correlation", default=None)


def new_correlation() -> Correlation:
    return Correlation(secrets.token_hex(16), secrets.token_hex(8))


def parse_correlation(text: str) -> Correlation | None:
    """Parse the result of `str`. Returns None for anything else."""
    match = _FORM.fullmatch(text)
    return Correlation(match[1], match[2]) if match else None


def current_correlation() -> str:
    """Return the correlation of the current request or task as text; empty outside of one."""
    correlation = _current.get()
    return "" if correlation is None else str(correlation)


@contextmanager
def correlated(correlation: Correlation) -> Generator[None]:
    """Assign everything in the block to the correlation."""
    token = _current.set(correlation)
    try:
        yield
    finally:
        _current.reset(token)
