"""The port of the current time."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The only source of the current time for core and handlers."""

    def now(self) -> datetime:
        """Return the current time in UTC, with a time zone."""
        ...
