"""How each knowledge source is doing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

STALE_AFTER = timedelta(hours=24)  # without a reading, a source's knowledge is marked as old


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """The state of a source. `passages` is None if the index does not tell passages apart by source.

    `read_at` is when the source was last tried, None if never; `failure` why that failed, empty if it did not.
    `left_out` names documents that could not be indexed, each with the reason.
    """

    name: str
    reads: str
    documents: int
    passages: int | None
    read_at: datetime | None
    failure: str = ""
    left_out: tuple[str, ...] = ()

    def condition(self, now: datetime) -> str:
        """`failing`, `never read`, `old` or `fresh`."""
        if self.failure:
            return "failing"
        if self.read_at is None:
            return "never read"
        return "old" if now - self.read_at > STALE_AFTER else "fresh"
