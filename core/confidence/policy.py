"""The workspace's policy for acting on calibrated badges. By default, badges have no effect."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from core.model.badge import Badge


@dataclass(frozen=True, slots=True)
class Policy:
    """Thresholds as probabilities in [0, 1]; None means never. Uncalibrated badges have no effect.

    Below `ask_below`, an owner or a cause is shown as a question; above `ping_owner_above`, the owner is pinged. With
    `ping_two_when_unsure`, the two candidate teams are pinged if no owner can be named.
    """

    ask_below: float | None = None
    ping_owner_above: float | None = None
    ping_two_when_unsure: bool = False

    @property
    def calls_owners(self) -> bool:
        """Return whether any owner is ever pinged."""
        return self.ping_owner_above is not None

    def asks(self, badge: Badge | None) -> bool:
        known = badge.probability if badge else None
        return self.ask_below is not None and known is not None and known < self.ask_below

    def pings(self, badge: Badge | None) -> bool:
        known = badge.probability if badge else None
        return self.ping_owner_above is not None and known is not None and known > self.ping_owner_above


NO_POLICY = Policy()


@dataclass(frozen=True, slots=True)
class Holding:
    """The channels and limits for holding back an incident that surely needs no person. By default, there are none.

    `below` is the largest calibrated probability of needing a person, None for never; `length` the time after which it is
    posted all the same, unless it has ended; `channels` are the names of the channels in which this is allowed.
    """

    below: float | None = None
    length: timedelta = timedelta(minutes=10)
    channels: frozenset[str] = frozenset()
