"""The passage index embedded in this process: Qdrant's engine on a folder."""

from __future__ import annotations

import asyncio
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import qdrant_edge as edge
import structlog
from numpy.typing import NDArray

from adapters.qdrant_payload import DENSE, KEYWORD_FIELDS, LEXICAL, Points, from_payload, stored, to_payload
from core.model.document import Passage
from core.model.errors import IndexUnavailable
from core.ports import EncodedPassage, Hit, SparseVector

T = TypeVar("T")

TRIAL = """
import sys, qdrant_edge as edge
shard = edge.EdgeShard.load(sys.argv[1])
shard.count(edge.CountRequest(exact=True))
shard.close()
"""
"""Run in a process of its own before the folder is opened: the engine aborts its process over some damaged files."""
TRIAL_TIME = 300.0  # seconds; opening an intact index takes milliseconds

GROWTH = 2**30  # bytes by which a file may grow during opening; one with a damaged length grew to 137 GB
PAGE = 1_000  # points per read of a scan
OPTIMISE_AFTER = 20_000  # points written, after which the segments are merged

# Memory-mapped instead of copied on opening, which halves time and memory: the operating system caches what is
# searched.
ON_DISK = edge.Memory.Cold

# Operating system errors that do not indicate damage: no space, no permission, no file handles.
_RESOURCES = re.compile(r"WouldBlock|os error (?:5|11|12|13|16|23|24|28|30)\b")

log = structlog.get_logger()


class DamagedIndex(IndexUnavailable):
    """The index is damaged, and counts as empty from now on."""


class EdgeIndex(Points):
    """A PassageIndex in a folder that one process at a time may open.

    Searches by words take less than a millisecond and run on the event loop. Searches by meaning compare with two bits of
    each dimension of every vector, then with the whole vectors of the nearest, sixty for each passage wanted. They run in a
    thread, as do writes and scans. A damaged index is treated as empty until `clear` recreates it.
    """

    def __init__(self, folder: Path) -> None:
        """Open the folder, which may be missing. Raises IndexUnavailable if another process has it open."""
        self._folder = folder
        self._written = 0
        self._shard: edge.EdgeShard | None = None
        if (folder / "edge_config.json").exists():
            self._shard = self._read(self._load, None)

    def _load(self) -> edge.EdgeShard:
        """Load the folder within limits, because a damaged length would let a file and memory grow without end.

        Raises RuntimeError if the engine crashes.
        """
        sizes = [path.stat().st_size for path in self._folder.rglob("*") if path.is_file()]
        allowed, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (_within(most, GROWTH + max(sizes)), most))
        try:
            self._open_in_trial_process()
            return edge.EdgeShard.load(str(self._folder))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (allowed, most))

    def _open_in_trial_process(self) -> None:
        """Raise RuntimeError if opening the folder crashes or hangs a trial process.

        Other failures recur in this process.
        """
        trial = [sys.executable, "-I", "-c", TRIAL, str(self._folder)]
        try:
            ended = subprocess.run(trial, capture_output=True, timeout=TRIAL_TIME, check=False)  # noqa: S603 — ours
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(f"Opening the index took longer than {TRIAL_TIME:.0f} s.") from error
        if ended.returncode < 0:
            raise RuntimeError(f"Opening the index crashed the engine with signal {-ended.returncode}.")

    async def upsert(self, passages: Sequence[EncodedPassage]) -> None:
        points = [
            edge.Point(
                encoded.passage.id,
                {
                    **({DENSE: encoded.dense.tolist()} if encoded.dense.size else {}),
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
            await self._write(edge.UpdateOperation.delete_points_by_filter(_matching({"document_id": document_ids})))

    async def clear(self, dimensions: int) -> None:
        self._close()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        config = edge.EdgeConfig(
            vectors={DENSE: _dense(dimensions)} if dimensions else {},
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
        return await asyncio.to_thread(
            self._search,
            edge.Query.Nearest(query.tolist(), using=DENSE),
            readers,
            limit,
            edge.SearchParams(quantization=edge.QuantizationSearchParams(rescore=True, oversampling=60.0)),
        )

    async def read(self, passage_ids: Sequence[str], readers: frozenset[str]) -> list[Passage]:
        shard = self._shard
        if shard is None or not passage_ids:
            return []

        def retrieved() -> list[Passage]:
            records = shard.retrieve(list(passage_ids), with_payload=True, with_vector=False)
            return stored({str(record.id): record.payload or {} for record in records}, passage_ids, readers)

        return self._read(retrieved, [])

    async def count(self) -> int:
        shard = self._shard
        return self._read(lambda: shard.count(edge.CountRequest(exact=True)), 0) if shard else 0

    async def close(self) -> None:
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        shard, self._shard = self._shard, None
        if shard is not None:
            try:
                shard.close()
            except BaseException as error:
                if not _is_engine_error(error):
                    raise
                log.debug("index_not_closed", error=str(error))  # a damaged one may refuse

    def _search(
        self, query: edge.Query, readers: frozenset[str], limit: int, params: edge.SearchParams | None = None
    ) -> list[Hit]:
        shard = self._shard
        if shard is None or not readers:
            return []
        # The engine's threads would take ten times as long for payloads as the search itself.
        request = edge.QueryRequest(
            limit=limit, query=query, filter=_matching({"readers": readers}), with_payload=False, params=params
        )
        return self._read(lambda: [Hit(str(point.id), point.score) for point in shard.query(request)], [])

    async def _scroll(self, conditions: Mapping[str, Collection[Any]]) -> AsyncIterator[Passage]:
        offset: Any = None
        while shard := self._shard:
            request = edge.ScrollRequest(offset=offset, limit=PAGE, filter=_matching(conditions), with_payload=True)

            def page(shard: edge.EdgeShard = shard, request: edge.ScrollRequest = request) -> tuple[list[Passage], Any]:
                points, following = shard.scroll(request)
                return [from_payload(str(point.id), point.payload or {}) for point in points], following

            passages, offset = await asyncio.to_thread(self._read, page, ([], offset))
            for passage in passages:
                yield passage
            if offset is None:
                return
        if offset is not None:
            raise IndexUnavailable(f"The passage index in {self._folder} is damaged. The next ingestion rebuilds it.")

    async def _write(self, operation: edge.UpdateOperation) -> None:
        shard = self._open_shard()
        await asyncio.to_thread(self._call, lambda: shard.update(operation))

    def _open_shard(self) -> edge.EdgeShard:
        if self._shard is None:
            raise IndexUnavailable(f"The passage index in {self._folder} is empty: call clear before writing to it.")
        return self._shard

    def _read(self, operation: Callable[[], T], empty: T) -> T:
        """Return the result of a read, or `empty` if the index turns out to be damaged. Raises IndexUnavailable."""
        try:
            return self._call(operation)
        except DamagedIndex:
            return empty

    def _call(self, operation: Callable[[], T]) -> T:
        """Return the result of a read or a write. Raises IndexUnavailable, which is a DamagedIndex if it is damaged."""
        try:
            return operation()
        except BaseException as error:
            if not _is_engine_error(error):
                raise
            if _RESOURCES.search(str(error)):
                raise self._unavailable(error) from error
            self._set_aside(error)
            raise DamagedIndex(f"The passage index in {self._folder} failed: {error}") from error

    def _set_aside(self, error: BaseException) -> None:
        log.warning(
            "index_damaged",
            folder=str(self._folder),
            error=str(error)[:200],
            action="Searches find nothing until the next ingestion has rebuilt it: plumbline ingest.",
        )
        self._close()

    def _unavailable(self, error: BaseException) -> IndexUnavailable:
        if "WouldBlock" in str(error):
            return IndexUnavailable(
                f"The passage index in {self._folder} is open in another process: stop that one, or give this one "
                "its own PLUMBLINE_DATA_DIR or a PLUMBLINE_QDRANT_URL."
            )
        return IndexUnavailable(f"The passage index in {self._folder} failed: {error}")


def _is_engine_error(error: BaseException) -> bool:
    """Return whether the engine raised the error: plain Exception, or for a panic a type that is not an Exception."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _within(most: int, wanted: int) -> int:
    return wanted if most == resource.RLIM_INFINITY else min(wanted, most)


def _dense(dimensions: int) -> edge.EdgeVectorParams:
    return edge.EdgeVectorParams(
        size=dimensions,
        distance=edge.Distance.Dot,
        multivector_config=edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim),
        datatype=edge.VectorStorageDatatype.Float16,
        memory=ON_DISK,
        # Two bits a dimension, by which the nearest are chosen whose vectors are then compared. An index without compares all.
        quantization_config=edge.BinaryQuantizationConfig(
            encoding=edge.BinaryQuantizationEncoding.TwoBits, memory=ON_DISK
        ),
        # No graph: among several vectors a passage it finds a third of what is nearest, and takes minutes to build.
        hnsw_config=edge.HnswIndexConfig(m=0, ef_construct=4, full_scan_threshold=0),
    )


def _matching(conditions: Mapping[str, Collection[Any]]) -> edge.Filter:
    return edge.Filter(
        must=[edge.FieldCondition(field, match=edge.MatchAny(list(values))) for field, values in conditions.items()]
    )
