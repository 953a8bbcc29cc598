"""Rate limits of chat channels for a single process."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from core.model.pace import LimiterState, PostingRate, new_limiter_state

MAX_LANES = 1_000  # lanes remembered; the least recently used one is dropped first


class LocalRateLimiter:
    """Implements `core.ports.RateLimiter` in memory."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Create the limiter. `now` is a clock in seconds."""
        self._now = now
        self._lanes: OrderedDict[str, LimiterState] = OrderedDict()

    async def take(self, lane: str, ticket: str, rate: PostingRate) -> float:
        changed, wait = self._lane(lane, rate).take(ticket, rate, self._now())
        self._keep(lane, changed)
        return wait

    async def answered(self, lane: str, rate: PostingRate) -> None:
        self._keep(lane, self._lane(lane, rate).answered(rate, self._now()))

    async def rest(self, lane: str, seconds: float, rate: PostingRate) -> None:
        self._keep(lane, self._lane(lane, rate).rest(seconds, rate, self._now()))

    def _lane(self, name: str, rate: PostingRate) -> LimiterState:
        return self._lanes.get(name) or new_limiter_state(rate, self._now())

    def _keep(self, name: str, lane: LimiterState) -> None:
        self._lanes[name] = lane
        self._lanes.move_to_end(name)
        if len(self._lanes) > MAX_LANES:
            self._lanes.popitem(last=False)
