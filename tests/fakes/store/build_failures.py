"""Failed builds in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.model.badge import RecordedFailure
from core.model.conversation import Place


@dataclass(slots=True)
class InMemoryBuildFailures:
    by_id: dict[str, RecordedFailure] = field(default_factory=dict)

    async def get(self, failure_id: str) -> RecordedFailure | None:
        return self.by_id.get(failure_id)

    async def save(self, failure: RecordedFailure) -> None:
        self.by_id[failure.id] = failure

    async def confirmed(self, project: str, limit: int) -> list[RecordedFailure]:
        return [each for each in self._newest() if each.project == project and each.confirmed_by][:limit]

    async def in_thread(self, place: Place) -> RecordedFailure | None:
        told = (each for each in self._newest() if each.place and place.thread)
        return next((each for each in told if _same_thread(each.place, place)), None)

    async def forget_older(self, project: str, keep: int) -> None:
        for confirmed in (True, False):
            known = [
                each for each in self._newest() if each.project == project and bool(each.confirmed_by) is confirmed
            ]
            for old in known[keep:]:
                del self.by_id[old.id]

    def _newest(self) -> list[RecordedFailure]:
        in_order = sorted(self.by_id.values(), key=lambda each: each.id)
        return sorted(in_order, key=lambda each: each.found_at, reverse=True)


def _same_thread(one: Place | None, other: Place) -> bool:
    return one is not None and (one.platform, one.channel, one.thread) == (other.platform, other.channel, other.thread)
