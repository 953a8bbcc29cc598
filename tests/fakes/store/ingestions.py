"""The ingestions and cursors of sources in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.ports import Ingestion, SourceCursor


@dataclass(slots=True)
class InMemoryIngestions:
    by_source: dict[str, Ingestion] = field(default_factory=dict)
    cursors: dict[str, SourceCursor] = field(default_factory=dict)

    async def record(self, ingestion: Ingestion) -> None:
        self.by_source[ingestion.source] = ingestion

    async def all(self) -> list[Ingestion]:
        begun = {source: Ingestion(source, None, cursor.documents) for source, cursor in self.cursors.items()}
        known = begun | self.by_source
        return [known[source] for source in sorted(known)]

    async def forget(self, source: str) -> None:
        self.by_source.pop(source, None)
        self.cursors.pop(source, None)


@dataclass(slots=True)
class InMemoryCursors:
    by_source: dict[str, SourceCursor]

    async def load(self, source: str) -> SourceCursor | None:
        return self.by_source.get(source)

    async def save(self, source: str, cursor: SourceCursor) -> None:
        self.by_source[source] = cursor
