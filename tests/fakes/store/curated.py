"""Curated answers in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from core.model.document import CuratedAnswer


@dataclass(slots=True)
class InMemoryCurated:
    by_id: dict[str, CuratedAnswer] = field(default_factory=dict)

    async def get(self, answer_id: str) -> CuratedAnswer | None:
        return self.by_id.get(answer_id)

    async def save(self, answer: CuratedAnswer) -> None:
        self.by_id[answer.id] = answer

    async def current(self, at: datetime) -> list[CuratedAnswer]:
        known = sorted(self.by_id.values(), key=lambda answer: answer.id)
        return [answer for answer in known if answer.expires_at is not None and answer.expires_at > at]
