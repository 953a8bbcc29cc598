"""Dead letters in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from core.model.conversation import Place
from core.model.messages import Message
from core.ports import DeadLetter


@dataclass(slots=True)
class InMemoryDeadLetters:
    by_intent: dict[str, DeadLetter] = field(default_factory=dict)

    async def add(self, intent: str, place: Place, message: Message, reason: str, *, waits: bool = False) -> None:
        now, earlier = datetime.now(UTC), self.by_intent.get(intent)
        since = (earlier.waiting_since if earlier else None) or now
        self.by_intent[intent] = DeadLetter(intent, place, message, reason, now, since if waits else None)

    async def get(self, intent: str) -> DeadLetter | None:
        return self.by_intent.get(intent)

    async def latest(self, limit: int) -> list[DeadLetter]:
        in_order = sorted(self.by_intent.values(), key=lambda letter: letter.intent)
        return sorted(in_order, key=lambda letter: letter.at, reverse=True)[:limit]

    async def waiting(self) -> list[DeadLetter]:
        waiting = ((each.waiting_since, each) for each in self.by_intent.values() if each.waiting_since is not None)
        return [letter for _, letter in sorted(waiting, key=lambda pair: pair[0])]

    async def count(self) -> int:
        return len(self.by_intent)

    async def remove(self, intent: str) -> None:
        self.by_intent.pop(intent, None)
