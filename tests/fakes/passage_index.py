"""A passage index in a dictionary: exact, and with nothing behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from core.knowledge.terms import Encoder
from core.model.document import Passage
from core.ports import EncodedPassage, Hit, SparseVector


class FakePassageIndex:
    """Every passage that was written, by id."""

    def __init__(self) -> None:
        self.points: dict[str, EncodedPassage] = {}
        self.cleared: list[int] = []  # the dimensions of every clear

    async def upsert(self, passages: Sequence[EncodedPassage]) -> None:
        self.points |= {encoded.passage.id: encoded for encoded in passages}

    async def delete_documents(self, document_ids: Sequence[str]) -> None:
        self.points = {
            key: point for key, point in self.points.items() if point.passage.document_id not in document_ids
        }

    async def clear(self, dimensions: int) -> None:
        self.points = {}
        self.cleared.append(dimensions)

    async def search_lexical(self, query: SparseVector, readers: frozenset[str], limit: int) -> list[Hit]:
        weights = dict(zip(query.indices, query.values, strict=True))

        def score(point: EncodedPassage) -> float:
            terms = zip(point.lexical.indices, point.lexical.values, strict=True)
            return sum(weights.get(index, 0.0) * value for index, value in terms)

        return [found for found in self._best(score, readers, limit) if found.score > 0]

    async def search_dense(self, query: NDArray[np.float32], readers: frozenset[str], limit: int) -> list[Hit]:
        return self._best(
            lambda point: float((point.dense.reshape(-1, query.size) @ query).max(initial=-1.0)), readers, limit
        )

    async def read(self, passage_ids: Sequence[str], readers: frozenset[str]) -> list[Passage]:
        points = [self.points[key] for key in passage_ids if key in self.points]
        return [point.passage for point in points if not point.passage.readers.isdisjoint(readers)]

    async def passages_of(self, document_id: str, readers: frozenset[str]) -> list[Passage]:
        passages = [p async for p in self.scan([document_id]) if not p.readers.isdisjoint(readers)]
        return sorted(passages, key=lambda passage: passage.number)

    async def scan(self, document_ids: Sequence[str] | None = None) -> AsyncIterator[Passage]:
        for point in list(self.points.values()):
            if document_ids is None or point.passage.document_id in document_ids:
                yield point.passage

    async def content_hashes(self, source: str) -> dict[str, str]:
        passages = [point.passage for point in self.points.values()]
        return {p.document_id: p.content_hash for p in passages if p.document_id.startswith(f"{source}/")}

    async def count(self) -> int:
        return len(self.points)

    async def close(self) -> None:
        pass

    def _best(self, score: Callable[[EncodedPassage], float], readers: frozenset[str], limit: int) -> list[Hit]:
        readable = [point for point in self.points.values() if not point.passage.readers.isdisjoint(readers)]
        scored = [Hit(point.passage.id, score(point)) for point in readable]
        return sorted(scored, key=lambda found: -found.score)[:limit]


class FakeEncoderStore:
    """Holds the encoder that was saved last, and remembers all of them."""

    def __init__(self) -> None:
        self.saved: list[Encoder] = []

    async def load(self) -> Encoder | None:
        return self.saved[-1] if self.saved else None

    async def load_newest(self) -> Encoder | None:
        return await self.load()

    async def save(self, encoder: Encoder) -> None:
        self.saved.append(encoder)
