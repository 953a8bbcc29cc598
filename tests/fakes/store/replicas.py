"""Replicas in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(slots=True)
class InMemoryReplicas:
    by_id: dict[str, datetime] = field(default_factory=dict)

    async def seen(self, replica: str, at: datetime) -> None:
        self.by_id[replica] = at

    async def all(self) -> dict[str, datetime]:
        return dict(self.by_id)

    async def remove(self, replica: str) -> None:
        self.by_id.pop(replica, None)
