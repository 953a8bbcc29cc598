"""Turns to write in a channel: as many as its chat allows, in the order in which they were asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

LATE = 60.0  # seconds after which a turn that nobody took is lost: whoever asked for it may be gone


@dataclass(frozen=True, slots=True)
class Pace:
    """One turn every `interval` seconds, and after a rest at once those that would have been due within `saved`."""

    interval: float
    saved: float = 0.0


@dataclass(frozen=True, slots=True)
class Lane:
    """The turns in one channel, by a clock in seconds that showed `at` when this was so.

    `free_at` is the first moment that nobody has a turn at, `last` the last turn that was taken. A burst sets each of
    them back by up to `saved`. `turns` are those that were asked for and not taken, by the ticket of whoever asked.
    """

    at: float
    free_at: float
    last: float
    turns: Mapping[str, float] = field(default_factory=dict[str, float])

    def take(self, ticket: str, pace: Pace, now: float) -> tuple[Lane, float]:
        """The lane afterwards, and 0.0 if the turn of this ticket is taken; else the seconds until it comes."""
        lane = self.seen(now)
        turns, free_at = dict(lane.turns), lane.free_at
        turn = turns.pop(ticket, None)
        if turn is None:
            turn = max(now, free_at)
            free_at = max(now - pace.saved, free_at) + pace.interval
        # Who comes late takes the next moment, and whoever has that one comes after him.
        turn = max(turn, now, lane.last + pace.interval)
        if turn > now:
            return replace(lane, free_at=free_at, turns=turns | {ticket: turn}), turn - now
        last = max(turn - pace.saved, lane.last + pace.interval)
        return replace(lane, free_at=max(free_at, last + pace.interval), last=last, turns=turns), 0.0

    def answered(self, pace: Pace, now: float) -> Lane:
        """The platform took what was written, or refused it, only now: it counts from when that arrived there."""
        lane = self.seen(now)
        delay = max(now - pace.saved - lane.last, 0.0)
        return lane.shifted(delay, lane.last + delay)

    def rest(self, seconds: float, pace: Pace, now: float) -> Lane:
        """Nobody has a turn for so long, or longer if that was asked for before. The order stays."""
        lane, until = self.seen(now), now + seconds
        next_turn = min(turn for turn in (*lane.turns.values(), lane.free_at, until) if turn >= now)
        rested = lane.shifted(until - next_turn, max(lane.last, until - pace.interval))
        return replace(rested, free_at=max(rested.free_at, until))

    def seen(self, now: float) -> Lane:
        """As of now: without the turns that are lost. A clock that was set back takes all of them along."""
        lane = self.shifted(now - self.at, self.last + now - self.at) if now < self.at else self
        return replace(lane, at=now, turns={each: turn for each, turn in lane.turns.items() if now - turn < LATE})

    def shifted(self, seconds: float, last: float) -> Lane:
        """Everything that is to come so much later."""
        turns = {ticket: turn + seconds for ticket, turn in self.turns.items()}
        return replace(self, free_at=self.free_at + seconds, last=last, turns=turns)


def new_lane(pace: Pace, now: float) -> Lane:
    """One in which everybody rested long enough."""
    free_at = now - pace.saved
    return Lane(now, free_at, free_at - pace.interval)
