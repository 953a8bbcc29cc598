"""Conversations in memory."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime

from core.model.conversation import Place, Turn


@dataclass(slots=True)
class InMemoryConversations:
    turns: dict[str, tuple[Place, Turn]] = field(default_factory=dict)
    said_at: dict[str, datetime] = field(default_factory=dict)

    async def put(self, key: str, place: Place, turn: Turn, at: datetime) -> None:
        self.turns[key] = place, turn
        self.said_at[key] = at

    async def forget(self, key: str) -> None:
        self.turns.pop(key, None)

    async def get(self, key: str, place: Place) -> Turn | None:
        where, turn = self.turns.get(key, (None, None))
        return turn if where is not None and replace(where, thread=None) == replace(place, thread=None) else None

    async def history(self, place: Place, limit: int, besides: Collection[str] = ()) -> tuple[Turn, ...]:
        others = [said for key, said in self.turns.items() if key not in besides and place.thread is not None]
        here = [turn for where, turn in others if where == place]
        return tuple(here[-limit:])

    async def latest(self, place: Place, since: datetime, limit: int) -> tuple[Turn, ...]:
        channel = replace(place, thread=None)
        here = [where for key, (where, _) in self.turns.items() if self.said_at[key] >= since]
        last = next((where for where in reversed(here) if replace(where, thread=None) == channel), channel)
        return await self.history(last, limit)
