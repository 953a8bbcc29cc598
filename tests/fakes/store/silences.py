"""Silences in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from core.model.silences import Silence


@dataclass(slots=True)
class InMemorySilences:
    by_id: dict[str, Silence] = field(default_factory=dict)

    async def save(self, silence: Silence) -> None:
        self.by_id[silence.id] = silence

    async def not_over(self, at: datetime) -> list[Silence]:
        lasting = [silence for silence in self.by_id.values() if silence.ends_at > at]
        return sorted(lasting, key=lambda silence: (silence.ends_at, silence.id))
