"""Rate limits for posting to a channel, with turns in request order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

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
