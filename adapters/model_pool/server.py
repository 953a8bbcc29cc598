"""A server of a pool, its load, and the circuit breaker that spares it while it fails."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from adapters.model_pool.queue import QueuePlace
from core.model.language_model import Urgency
from core.ports import Clock, LanguageModel

SHARED_ENOUGH = 0.5  # share of a prompt that must be cached for a server to be preferred


@dataclass(frozen=True, slots=True)
class ModelServer:
    """A language model at one address, with a number of concurrent `slots`.

    `check` is the health check: it returns the number of slots, and raises ModelUnavailable if the server is unhealthy.
    """

    address: str
    model: LanguageModel
    slots: int
    check: Callable[[], Awaitable[int]]


class RequestOutcome(StrEnum):
    """The outcome of a request to a server."""

    ANSWERED = "answered"  # also with a refusal of this request
    FAILED = "failed"
    ABANDONED = "abandoned"  # timed out or cancelled; many of these suggest that the server hangs


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The state of a server. `outcomes` counts its finished requests since the bot started."""

    address: str
    breaker: BreakerState
    busy: int
    slots: int
    outcomes: Mapping[RequestOutcome, int]


class ServerLoad:
    """The running requests of a server, and the prompts that it may have cached."""

    def __init__(self, server: ModelServer, clock: Clock) -> None:
        self.server = server
        self.breaker = CircuitBreaker(clock)
        self.slots = server.slots
        self._running: list[QueuePlace] = []
        self._prompts: deque[str] = deque(maxlen=server.slots)
        self._outcomes = Counter(dict.fromkeys(RequestOutcome, 0))

    def resize(self, slots: int) -> None:
        """Set the number of slots, after the server was restarted."""
        if slots != self.slots:
            self.slots = slots
            self._prompts = deque(self._prompts, maxlen=slots)

    @property
    def busy(self) -> int:
        return sum(map(self._width, self._running))

    @property
    def busy_with_background(self) -> int:
        return sum(self._width(ticket) for ticket in self._running if ticket.urgency is Urgency.BACKGROUND)

    def _width(self, ticket: QueuePlace) -> int:
        return min(ticket.width, self.slots)

    @property
    def free(self) -> int:
        """Return the number of free slots; negative if a request for several replies began with one slot."""
        return self.slots - self.busy

    @property
    def status(self) -> ServerStatus:
        busy = min(self.busy, self.slots)
        return ServerStatus(self.server.address, self.breaker.state, busy, self.slots, dict(self._outcomes))

    def start(self, ticket: QueuePlace) -> None:
        self._running.append(ticket)
        self._prompts.append(ticket.prompt)
        self.breaker.started()

    def stop(self, ticket: QueuePlace, outcome: RequestOutcome) -> None:
        self._running.remove(ticket)
        self._outcomes[outcome] += 1
        match outcome:
            case RequestOutcome.ANSWERED:
                self.breaker.succeeded()
            case RequestOutcome.FAILED:
                self.breaker.failed()
            case RequestOutcome.ABANDONED:
                self.breaker.abandoned()

    def abandon(self, ticket: QueuePlace) -> None:
        """Undo a start for which nothing was sent."""
        self._running.remove(ticket)
        self.breaker.abandoned()

    def cached_share(self, prompt: str) -> float:
        """Return the cached share of a prompt; 0 if it is too small to matter."""
        shared = max((_common_prefix(prompt, earlier) for earlier in self._prompts), default=0)
        share = shared / len(prompt) if prompt else 0.0
        return share if share >= SHARED_ENOUGH else 0.0


def _common_prefix(left: str, right: str) -> int:
    limit = min(len(left), len(right))
    return bisect_left(range(limit), True, key=lambda index: left[: index + 1] != right[: index + 1])


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
