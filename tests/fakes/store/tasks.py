"""Tasks in memory."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime

from core.ports import Backlog, Task


@dataclass(slots=True)
class InMemoryTasks:
    added: dict[str, Task] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    added_at: dict[str, datetime] = field(default_factory=dict)

    async def add(self, task: Task) -> bool:
        is_new = task.key not in self.added
        self.added.setdefault(task.key, task)
        self.added_at.setdefault(task.key, datetime.now(UTC))
        return is_new

    async def backlog(self) -> Backlog:
        waiting = [key for key in self.added if key not in self.ended | self.owners.keys()]
        oldest = min((self.added_at[key] for key in waiting), default=None)
        return Backlog(len(waiting), oldest, len(self.owners.keys() - self.ended))

    async def is_known(self, key: str) -> bool:
        return key in self.added

    async def claim(self, owner: str, limit: int, busy: Collection[str] = ()) -> list[Task]:
        waiting = [task for key, task in self.added.items() if key not in self.ended | self.owners.keys()]
        allowed = [task for task in waiting if task.person not in busy]
        oldest = sorted(allowed, key=lambda task: task.person != "")[:limit]
        self.owners |= {task.key: owner for task in oldest}
        return oldest

    async def release(self, owners: Collection[str], kept: Collection[str] = ()) -> int:
        released = [key for key, owner in self.owners.items() if owner in owners and key not in kept]
        for key in released:
            del self.owners[key]
        return len(released)

    async def end(self, keys: Collection[str]) -> None:
        self.ended |= set(keys)
        self.owners = {key: owner for key, owner in self.owners.items() if key not in keys}

    async def reopen(self, keys: Collection[str], owner: str) -> None:
        self.ended -= set(keys)
        self.owners |= dict.fromkeys(keys, owner)
