"""The audit log in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from core.model.audit import Act, AuditEntry, NumberedEntry


@dataclass(slots=True)
class InMemoryAudit:
    entries: list[NumberedEntry] = field(default_factory=list)
    count: int = 0  # of all that were ever added

    async def add(self, entry: AuditEntry) -> None:
        if all(known.entry.key != entry.key for known in self.entries):
            self.count += 1
            self.entries.append(NumberedEntry(self.count, entry))

    async def latest(self, limit: int, before: int | None = None, act: Act | None = None) -> list[NumberedEntry]:
        shown = [
            each
            for each in reversed(self.entries)
            if (before is None or each.number < before) and (act is None or each.entry.act is act)
        ]
        return shown[:limit]

    async def since(self, at: datetime, after: int, limit: int) -> list[NumberedEntry]:
        return [each for each in self.entries if each.entry.at >= at and each.number > after][:limit]
