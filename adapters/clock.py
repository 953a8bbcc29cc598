"""The clock of this machine."""

from __future__ import annotations

from datetime import UTC, datetime


class SystemClock:
    """Implements `core.ports.Clock`."""

    def now(self) -> datetime:
        return datetime.now(UTC)
