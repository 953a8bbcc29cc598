"""How far sources were read, in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.ports import SourceCursor


@dataclass(slots=True)
class InMemoryCursors:
    by_source: dict[str, SourceCursor] = field(default_factory=dict)

    async def load(self, source: str) -> SourceCursor | None:
        return self.by_source.get(source)

    async def save(self, source: str, cursor: SourceCursor) -> None:
        self.by_source[source] = cursor
