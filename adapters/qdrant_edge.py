"""The passage index embedded in this process: Qdrant's own engine on a folder."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import qdrant_edge as edge
from numpy.typing import NDArray

from adapters.qdrant_payload import DENSE, KEYWORD_FIELDS, LEXICAL, from_payload, stored, to_payload
from core.errors import IndexUnavailable
from core.knowledge.document import Passage
from core.ports import EncodedPassage, Hit, SparseVector, StoredPassage

T = TypeVar("T")

PAGE = 1_000  # points read at once by a scan
OPTIMISE_AFTER = 20_000  # points written, after which the vector index is built anew

# Read where it lies, and not copied when the folder is opened, which takes half the time and half the memory: the
# operating system keeps in memory what is searched.
ON_DISK = edge.Memory.Cold

_ONLY_FIRST = edge.FieldCondition("number", match=edge.MatchValue(1))


class EdgeIndex:
    """A PassageIndex in a folder that one process at a time may open.

    Searches take less than a millisecond and run on the event loop; writes and scans run in a thread.
    """

    def __init__(self, folder: Path) -> None:
        """Open the folder, which may be missing. Raises IndexUnavailable if another process has it open."""
        self._folder = folder
        self._written = 0
        self._shard = self._opened() if (folder / "edge_config.json").exists() else None

    async def upsert(self, passages: Sequence[EncodedPassage]) -> None:
        points = [
            edge.Point(
                encoded.passage.id,
                {
                    DENSE: encoded.dense.tolist(),
                    LEXICAL: edge.SparseVector(list(encoded.lexical.indices), list(encoded.lexical.values)),
                },
                to_payload(encoded),
            )
            for encoded in passages
        ]
        await self._write(edge.UpdateOperation.upsert_points(points))
        self._written += len(points)
        if self._written >= OPTIMISE_AFTER:
            self._written = 0
            await asyncio.to_thread(self._call, self._open_shard().optimize)

    async def delete_documents(self, document_ids: Sequence[str]) -> None:
        if self._shard and document_ids:
            await self._write(edge.UpdateOperation.delete_points_by_filter(_matching("document_id", document_ids)))

    async def clear(self, dimensions: int) -> None:
        if self._shard:
            self._shard.close()
            self._shard = None
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        config = edge.EdgeConfig(
            vectors={DENSE: edge.EdgeVectorParams(size=dimensions, distance=edge.Distance.Dot)},
            sparse_vectors={LEXICAL: edge.EdgeSparseVectorParams(memory=ON_DISK)},
        )
        self._shard = await asyncio.to_thread(self._call, lambda: edge.EdgeShard.create(str(self._folder), config))
        for field in KEYWORD_FIELDS:
            await self._write(edge.UpdateOperation.create_field_index(field, edge.KeywordIndexParams(memory=ON_DISK)))

    async def search_lexical(self, query: SparseVector, readers: frozenset[str], limit: int) -> list[Hit]:
        if not query.indices:
            return []
        vector = edge.SparseVector(list(query.indices), list(query.values))
        return self._search(edge.Query.Nearest(vector, using=LEXICAL), readers, limit)

    async def search_dense(self, query: NDArray[np.float32], readers: frozenset[str], limit: int) -> list[Hit]:
        return self._search(edge.Query.Nearest(query.tolist(), using=DENSE), readers, limit)

    async def read(self, passage_ids: Sequence[str], readers: frozenset[str]) -> list[StoredPassage]:
        shard = self._shard
        if shard is None or not passage_ids:
            return []
        records = self._call(lambda: shard.retrieve(list(passage_ids), with_payload=True, with_vector=False))
        return stored({str(record.id): record.payload or {} for record in records}, passage_ids, readers)

    async def passages_of(self, document_id: str, readers: frozenset[str]) -> list[Passage]:
        conditions = edge.Filter(must=[_any_of("document_id", [document_id]), _any_of("readers", readers)])
        return sorted([passage async for passage in self._scroll(conditions)], key=lambda passage: passage.number)

    async def scan(self, document_ids: Sequence[str] | None = None) -> AsyncIterator[Passage]:
        conditions = None if document_ids is None else _matching("document_id", document_ids)
        async for passage in self._scroll(conditions):
            yield passage

    async def content_hashes(self, source: str) -> dict[str, str]:
        conditions = edge.Filter(must=[_any_of("source", [source]), _ONLY_FIRST])
        return {passage.document_id: passage.content_hash async for passage in self._scroll(conditions)}

    async def count(self) -> int:
        shard = self._shard
        return self._call(lambda: shard.count(edge.CountRequest(exact=True))) if shard else 0

    async def close(self) -> None:
        if self._shard:
            await asyncio.to_thread(self._shard.close)
            self._shard = None

    def _search(self, query: edge.Query, readers: frozenset[str], limit: int) -> list[Hit]:
        shard = self._shard
        if shard is None or not readers:
            return []
        # Payloads would be read in the engine's own threads, which takes ten times as long as the search.
        request = edge.QueryRequest(limit=limit, query=query, filter=_matching("readers", readers), with_payload=False)
        return [Hit(str(point.id), point.score) for point in self._call(lambda: shard.query(request))]

    async def _scroll(self, conditions: edge.Filter | None) -> AsyncIterator[Passage]:
        shard = self._shard
        offset: Any = None
        while shard:
            request = edge.ScrollRequest(offset=offset, limit=PAGE, filter=conditions, with_payload=True)
            points, offset = await asyncio.to_thread(self._call, lambda asked=request: shard.scroll(asked))
            for point in points:
                yield from_payload(str(point.id), point.payload or {})
            if offset is None:
                return

    async def _write(self, operation: edge.UpdateOperation) -> None:
        shard = self._open_shard()
        await asyncio.to_thread(self._call, lambda: shard.update(operation))

    def _open_shard(self) -> edge.EdgeShard:
        if self._shard is None:
            raise IndexUnavailable(f"The passage index in {self._folder} is empty: call clear before writing to it.")
        return self._shard

    def _opened(self) -> edge.EdgeShard:
        return self._call(lambda: edge.EdgeShard.load(str(self._folder)))

    def _call(self, operation: Callable[[], T]) -> T:
        """Run an operation of the engine, which raises nothing but plain `Exception`."""
        try:
            return operation()
        except Exception as error:
            if "WouldBlock" in str(error):
                raise IndexUnavailable(
                    f"The passage index in {self._folder} is open in another process: stop that one, or give this one "
                    "its own PLUMBLINE_DATA_DIR or a PLUMBLINE_QDRANT_URL."
                ) from error
            raise IndexUnavailable(f"The passage index in {self._folder} failed: {error}") from error


def _any_of(field: str, values: Sequence[str] | frozenset[str]) -> edge.FieldCondition:
    return edge.FieldCondition(field, match=edge.MatchAny(list(values)))


def _matching(field: str, values: Sequence[str] | frozenset[str]) -> edge.Filter:
    return edge.Filter(must=[_any_of(field, values)])
