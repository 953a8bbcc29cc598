"""The time."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The time. The only way for the core and the handlers to know it."""

    def now(self) -> datetime:
        """The current time, with a time zone (UTC)."""
        ...
