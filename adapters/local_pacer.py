"""Rate limits of chat channels for a single process."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from core.model.pace import Lane, Pace, new_lane

MAX_LANES = 1_000  # lanes remembered; the least recently used one is dropped first


class LocalPacer:
    """Implements `core.ports.Pacer` in memory."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Create the limiter. `now` is a clock in seconds."""
        self._now = now
        self._lanes: OrderedDict[str, Lane] = OrderedDict()

    async def take(self, lane: str, ticket: str, pace: Pace) -> float:
        changed, wait = self._lane(lane, pace).take(ticket, pace, self._now())
        self._keep(lane, changed)
        return wait

    async def answered(self, lane: str, pace: Pace) -> None:
        self._keep(lane, self._lane(lane, pace).answered(pace, self._now()))

    async def rest(self, lane: str, seconds: float, pace: Pace) -> None:
        self._keep(lane, self._lane(lane, pace).rest(seconds, pace, self._now()))

    def _lane(self, name: str, pace: Pace) -> Lane:
        return self._lanes.get(name) or new_lane(pace, self._now())

    def _keep(self, name: str, lane: Lane) -> None:
        self._lanes[name] = lane
        self._lanes.move_to_end(name)
        if len(self._lanes) > MAX_LANES:
            self._lanes.popitem(last=False)
