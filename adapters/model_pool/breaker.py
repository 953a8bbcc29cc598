"""A circuit breaker for failing servers."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from core.ports import Clock

FAILURES = 3  # consecutive failures that open the breaker
PAUSE = timedelta(seconds=30)  # time before one trial request
MEMORY = timedelta(minutes=5)  # time without a failure after which earlier failures are forgotten


class BreakerState(StrEnum):
    CLOSED = "closed"  # requests pass
    OPEN = "open"  # no request passes
    HALF_OPEN = "half-open"  # one trial request passes


class CircuitBreaker:
    """A circuit breaker.

    It opens after `FAILURES` consecutive failures, each within `MEMORY` of the previous one, and half-opens for one
    trial after `PAUSE` or a successful health check.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures = 0
        self._failed_at: datetime | None = None
        self._open_until: datetime | None = None
        self._trying = False

    @property
    def state(self) -> BreakerState:
        if self._open_until is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if self._clock.now() < self._open_until else BreakerState.HALF_OPEN

    @property
    def allows(self) -> bool:
        """Return whether a request may start now."""
        state = self.state
        return state is BreakerState.CLOSED or (state is BreakerState.HALF_OPEN and not self._trying)

    def started(self) -> None:
        self._trying = self.state is BreakerState.HALF_OPEN

    def succeeded(self) -> None:
        self._failures, self._open_until, self._trying = 0, None, False

    def failed(self) -> None:
        now = self._clock.now()
        recent = self._failed_at is not None and now - self._failed_at <= MEMORY
        self._failures = self._failures + 1 if recent else 1
        self._failed_at = now
        self._trying = False
        if self._failures >= FAILURES or self._open_until is not None:
            self._open_until = now + PAUSE

    def abandoned(self) -> None:
        """Record a request without information about the server: it was cancelled, or its time was up."""
        self._trying = False

    def recovered(self) -> None:
        """Record a successful health check: one trial request may start at once."""
        if self._open_until is not None:
            self._open_until = self._clock.now()
