"""Rate limits: of inbound requests by token buckets, and of posts to a channel with turns in request order."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address, ip_network

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
