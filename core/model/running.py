"""The run of a request: its correlation id, the threads that compute for it, and its turn within rate limits.

The format of an id is `traceparent` (W3C Trace Context, section 3.2), which also names the parent.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from ipaddress import IPv6Address, ip_address, ip_network
from typing import ParamSpec, TypeVar

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


P = ParamSpec("P")
T = TypeVar("T")

# One worker each, because every further computing thread would take interpreter time from the event loop.
_COMPUTE = ThreadPoolExecutor(1, "compute")
_ANALYSIS = ThreadPoolExecutor(1, "analysis")
_READING = ThreadPoolExecutor(2, "reading")  # two, because a disk of another machine may hang


async def run_in_compute_thread(work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Run `work`, which takes milliseconds, after the work queued before it. Returns its result or raises its error."""
    return await asyncio.get_running_loop().run_in_executor(_COMPUTE, partial(work, *arguments, **options))


async def run_in_analysis_thread(work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Run `work`, which may take seconds, after the work queued before it. Returns its result or raises its error."""
    return await asyncio.get_running_loop().run_in_executor(_ANALYSIS, partial(work, *arguments, **options))


async def run_in_reading_thread(work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Run `work`, which reads and parses large files, after the work queued before it."""
    return await asyncio.get_running_loop().run_in_executor(_READING, partial(work, *arguments, **options))


MAX_KEYS = 10_000  # buckets kept; the least recently used one is dropped first
IPV6_NETWORK = 64  # prefix length of one subscriber's IPv6 network


class TokenBuckets:
    """A limit of `burst` at once, and `per_second` in the long run."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = burst
        self._buckets: OrderedDict[str, tuple[float, datetime]] = OrderedDict()

    def take(self, key: str, now: datetime) -> float:
        """Take a token. Returns 0 on success, otherwise the seconds until a token is available."""
        missing = self.wait(key, now)
        if not missing:
            self._buckets[key] = (self._tokens(key, now) - 1, now)
            self._buckets.move_to_end(key)
            if len(self._buckets) > MAX_KEYS:
                self._buckets.popitem(last=False)
        return missing

    def wait(self, key: str, now: datetime) -> float:
        """Return the seconds until `take` succeeds; 0 if it would now."""
        return max(0.0, (1 - self._tokens(key, now)) / self._per_second)

    def _tokens(self, key: str, now: datetime) -> float:
        tokens, at = self._buckets.get(key, (float(self._burst), now))
        # A clock that was set back neither fills nor empties a bucket.
        return min(self._burst, tokens + max(now - at, timedelta()).total_seconds() * self._per_second)


def client_key(address: str | None) -> str:
    """Return the key of a client's address. IPv6 addresses share the key of their network."""
    try:
        parsed = ip_address((address or "").partition("%")[0])
    except ValueError:
        return address or ""
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or ip_network((parsed, IPV6_NETWORK), strict=False))


LATE = 60.0  # seconds after which an unused turn expires, because its requester may be gone


@dataclass(frozen=True, slots=True)
class PostingRate:
    """One turn every `interval` seconds, plus a burst of the turns of the last `saved` idle seconds."""

    interval: float
    saved: float = 0.0


@dataclass(frozen=True, slots=True)
class LimiterState:
    """The turns of one channel, at clock time `at` in seconds.

    `free_at` is the first moment without a turn, `last` the last turn taken; a burst moves both back by up to `saved`.
    `turns` maps the tickets of requesters to turns that are assigned and not taken.
    """

    at: float
    free_at: float
    last: float
    turns: Mapping[str, float] = field(default_factory=dict[str, float])

    def take(self, ticket: str, rate: PostingRate, now: float) -> tuple[LimiterState, float]:
        """Return the new state, and 0.0 if this ticket's turn was taken; otherwise the seconds until its turn."""
        state = self.seen(now)
        turns, free_at = dict(state.turns), state.free_at
        turn = turns.pop(ticket, None)
        if turn is None:
            turn = max(now, free_at)
            free_at = max(now - rate.saved, free_at) + rate.interval
        # A late requester takes the next moment, and the owner of that moment moves back.
        turn = max(turn, now, state.last + rate.interval)
        if turn > now:
            return replace(state, free_at=free_at, turns=turns | {ticket: turn}), turn - now
        last = max(turn - rate.saved, state.last + rate.interval)
        return replace(state, free_at=max(free_at, last + rate.interval), last=last, turns=turns), 0.0

    def answered(self, rate: PostingRate, now: float) -> LimiterState:
        """Return the state after the platform's response.

        The interval counts from the response, not from the request.
        """
        state = self.seen(now)
        delay = max(now - rate.saved - state.last, 0.0)
        return state.shifted(delay, state.last + delay)

    def rest(self, seconds: float, rate: PostingRate, now: float) -> LimiterState:
        """Return the state with all turns delayed for `seconds` (or longer, if already delayed more), in the same
        order.
        """
        state, until = self.seen(now), now + seconds
        next_turn = min(turn for turn in (*state.turns.values(), state.free_at, until) if turn >= now)
        rested = state.shifted(until - next_turn, max(state.last, until - rate.interval))
        return replace(rested, free_at=max(rested.free_at, until))

    def seen(self, now: float) -> LimiterState:
        """Return the state as of now, without expired turns. If the clock was set back, all turns move with it."""
        state = self.shifted(now - self.at, self.last + now - self.at) if now < self.at else self
        return replace(state, at=now, turns={each: turn for each, turn in state.turns.items() if now - turn < LATE})

    def shifted(self, seconds: float, last: float) -> LimiterState:
        """Return the state with all future turns moved by `seconds`."""
        turns = {ticket: turn + seconds for ticket, turn in self.turns.items()}
        return replace(self, free_at=self.free_at + seconds, last=last, turns=turns)


def new_limiter_state(rate: PostingRate, now: float) -> LimiterState:
    """Return a state after a long idle time."""
    free_at = now - rate.saved
    return LimiterState(now, free_at, free_at - rate.interval)
