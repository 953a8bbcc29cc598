"""The ingestions of sources in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.ports import Ingestion


@dataclass(slots=True)
class InMemoryIngestions:
    by_source: dict[str, Ingestion] = field(default_factory=dict)

    async def record(self, ingestion: Ingestion) -> None:
        self.by_source[ingestion.source] = ingestion

    async def all(self) -> list[Ingestion]:
        return [self.by_source[source] for source in sorted(self.by_source)]

    async def forget(self, source: str) -> None:
        self.by_source.pop(source, None)
