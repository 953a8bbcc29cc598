"""Rate limits for posting to a channel, with turns in request order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

LATE = 60.0  # seconds after which an unused turn expires, because its requester may be gone


@dataclass(frozen=True, slots=True)
class Pace:
    """One turn every `interval` seconds, plus a burst of the turns of the last `saved` idle seconds."""

    interval: float
    saved: float = 0.0


@dataclass(frozen=True, slots=True)
class Lane:
    """The turns of one channel, at clock time `at` in seconds.

    `free_at` is the first moment without a turn, `last` the last turn taken; a burst moves both back by up to `saved`.
    `turns` maps the tickets of requesters to turns that are assigned and not taken.
    """

    at: float
    free_at: float
    last: float
    turns: Mapping[str, float] = field(default_factory=dict[str, float])

    def take(self, ticket: str, pace: Pace, now: float) -> tuple[Lane, float]:
        """Return the new state, and 0.0 if this ticket's turn was taken; otherwise the seconds until its turn."""
        lane = self.seen(now)
        turns, free_at = dict(lane.turns), lane.free_at
        turn = turns.pop(ticket, None)
        if turn is None:
            turn = max(now, free_at)
            free_at = max(now - pace.saved, free_at) + pace.interval
        # A late requester takes the next moment, and the owner of that moment moves back.
        turn = max(turn, now, lane.last + pace.interval)
        if turn > now:
            return replace(lane, free_at=free_at, turns=turns | {ticket: turn}), turn - now
        last = max(turn - pace.saved, lane.last + pace.interval)
        return replace(lane, free_at=max(free_at, last + pace.interval), last=last, turns=turns), 0.0

    def answered(self, pace: Pace, now: float) -> Lane:
        """Return the state after the platform's response.

        The interval counts from the response, not from the request.
        """
        lane = self.seen(now)
        delay = max(now - pace.saved - lane.last, 0.0)
        return lane.shifted(delay, lane.last + delay)

    def rest(self, seconds: float, pace: Pace, now: float) -> Lane:
        """Return the state with all turns delayed for `seconds` (or longer, if already delayed more), in the same
        order.
        """
        lane, until = self.seen(now), now + seconds
        next_turn = min(turn for turn in (*lane.turns.values(), lane.free_at, until) if turn >= now)
        rested = lane.shifted(until - next_turn, max(lane.last, until - pace.interval))
        return replace(rested, free_at=max(rested.free_at, until))

    def seen(self, now: float) -> Lane:
        """Return the state as of now, without expired turns. If the clock was set back, all turns move with it."""
        lane = self.shifted(now - self.at, self.last + now - self.at) if now < self.at else self
        return replace(lane, at=now, turns={each: turn for each, turn in lane.turns.items() if now - turn < LATE})

    def shifted(self, seconds: float, last: float) -> Lane:
        """Return the state with all future turns moved by `seconds`."""
        turns = {ticket: turn + seconds for ticket, turn in self.turns.items()}
        return replace(self, free_at=self.free_at + seconds, last=last, turns=turns)


def new_lane(pace: Pace, now: float) -> Lane:
    """Return a state after a long idle time."""
    free_at = now - pace.saved
    return Lane(now, free_at, free_at - pace.interval)
