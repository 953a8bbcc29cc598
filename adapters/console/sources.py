"""The state of each knowledge source."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

STALE_AFTER = timedelta(hours=24)  # a source that was not read for so long is marked as old


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """The state of a source. `passages` is None if the index does not count passages per source.

    `read_at` is the time of the last attempt, None before the first one has ended; `failure` says why it failed, may be
    empty.
    `left_out` names documents that could not be indexed, with the reasons.
    """

    name: str
    reads: str
    documents: int
    passages: int | None
    read_at: datetime | None
    failure: str = ""
    left_out: tuple[str, ...] = ()

    def condition(self, now: datetime) -> str:
        """Return `failing`, `never read`, `first import`, `old` or `fresh`."""
        if self.failure:
            return "failing"
        if self.read_at is None:
            return "first import" if self.documents else "never read"
        return "old" if now - self.read_at > STALE_AFTER else "fresh"
