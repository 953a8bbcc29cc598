"""A clock that stands still until it is moved, and schedules of which nothing is ever due."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta


class FakeClock:
    def __init__(self, now: datetime = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


async def no_schedules(*_: object, **__: object) -> None:
    """Replace `keep_schedules` where a minute that ends during a test would change what is seen."""
    await asyncio.Event().wait()
