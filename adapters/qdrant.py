"""The passage index on a Qdrant server or cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Collection, Mapping, Sequence
from typing import Any, Self, TypeVar

import numpy as np
from httpx import HTTPError
from numpy.typing import NDArray
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import ApiException

from adapters.qdrant_payload import DENSE, KEYWORD_FIELDS, LEXICAL, Points, from_payload, stored, to_payload
from core.model.document import Passage
from core.model.errors import IndexUnavailable
from core.ports import EncodedPassage, Hit, SparseVector

T = TypeVar("T")

COLLECTION = "plumbline"
PAGE = 1_000  # points per read of a scan
TIMEOUT = 10  # seconds per request


class QdrantIndex(Points):
    """A PassageIndex in one collection, shared by any number of processes."""

    def __init__(self, client: AsyncQdrantClient, collection: str = COLLECTION) -> None:
        self._client = client
        self._collection = collection

    @classmethod
    def at(cls, url: str, api_key: str | None = None) -> Self:
        return cls(AsyncQdrantClient(url=url, api_key=api_key, timeout=TIMEOUT))

    async def upsert(self, passages: Sequence[EncodedPassage]) -> None:
        points = [
            models.PointStruct(
                id=encoded.passage.id,
                vector={
                    **({DENSE: encoded.dense.tolist()} if encoded.dense.size else {}),
                    LEXICAL: models.SparseVector(
                        indices=list(encoded.lexical.indices), values=list(encoded.lexical.values)
                    ),
                },
                payload=to_payload(encoded),
            )
            for encoded in passages
        ]
        await _response(self._client.upsert(self._collection, points=points, wait=True))

    async def delete_documents(self, document_ids: Sequence[str]) -> None:
        if document_ids and await self._exists():
            selector = models.FilterSelector(filter=_matching({"document_id": document_ids}))
            await _response(self._client.delete(self._collection, points_selector=selector, wait=True))

    async def clear(self, dimensions: int) -> None:
        if await self._exists():
            await _response(self._client.delete_collection(self._collection))
        await _response(
            self._client.create_collection(
                self._collection,
                vectors_config={DENSE: _dense(dimensions)} if dimensions else {},
                sparse_vectors_config={LEXICAL: models.SparseVectorParams()},
            )
        )
        for field in KEYWORD_FIELDS:
            await _response(
                self._client.create_payload_index(self._collection, field, models.PayloadSchemaType.KEYWORD, wait=True)
            )

    async def search_lexical(self, query: SparseVector, readers: frozenset[str], limit: int) -> list[Hit]:
        if not query.indices:
            return []
        vector = models.SparseVector(indices=list(query.indices), values=list(query.values))
        return await self._search(vector, LEXICAL, readers, limit, None)

    async def search_dense(self, query: NDArray[np.float32], readers: frozenset[str], limit: int) -> list[Hit]:
        return await self._search([query.tolist()], DENSE, readers, limit, models.SearchParams(exact=True))

    async def read(self, passage_ids: Sequence[str], readers: frozenset[str]) -> list[Passage]:
        if not passage_ids:
            return []
        points = await self._response_if_any(
            self._client.retrieve(self._collection, list(passage_ids), with_payload=True)
        )
        return stored({str(point.id): point.payload or {} for point in points or ()}, passage_ids, readers)

    async def count(self) -> int:
        return (await _response(self._client.count(self._collection, exact=True))).count if await self._exists() else 0

    async def close(self) -> None:
        await self._client.close()

    async def _exists(self) -> bool:
        return await _response(self._client.collection_exists(self._collection))

    async def _search(
        self, query: Any, vector: str, readers: frozenset[str], limit: int, params: models.SearchParams | None
    ) -> list[Hit]:
        request = self._client.query_points(
            self._collection,
            query=query,
            using=vector,
            query_filter=_matching({"readers": readers}),
            limit=limit,
            search_params=params,
            with_payload=False,
        )
        response = await self._response_if_any(request)
        return [Hit(str(point.id), point.score) for point in response.points] if response else []

    async def _response_if_any(self, request: Awaitable[T]) -> T | None:
        """Return the response; None if there is no collection yet, which is checked only after a failure."""
        try:
            return await _response(request)
        except IndexUnavailable:
            if await self._exists():
                raise
            return None

    async def _scroll(self, conditions: Mapping[str, Collection[Any]]) -> AsyncIterator[Passage]:
        if not await self._exists():
            return
        offset: Any = None
        while True:
            points, offset = await _response(
                self._client.scroll(
                    self._collection, scroll_filter=_matching(conditions), limit=PAGE, offset=offset, with_payload=True
                )
            )
            for point in points:
                yield from_payload(str(point.id), point.payload or {})
            if offset is None:
                return


def _dense(dimensions: int) -> models.VectorParams:
    return models.VectorParams(
        size=dimensions,
        distance=models.Distance.DOT,
        multivector_config=models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM),
        datatype=models.Datatype.FLOAT16,
        on_disk=True,
        hnsw_config=models.HnswConfigDiff(m=0),  # no graph, for the same reason as in qdrant_edge.py
    )


def _matching(conditions: Mapping[str, Collection[Any]]) -> models.Filter:
    return models.Filter(
        must=[
            models.FieldCondition(key=field, match=models.MatchAny(any=list(values)))
            for field, values in conditions.items()
        ]
    )


async def _response(request: Awaitable[T]) -> T:
    """Return the server's response. The client's local mode raises ValueError where a server answers 404."""
    try:
        return await request
    except (ApiException, HTTPError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise IndexUnavailable(f"The Qdrant server failed: {reason}. Check PLUMBLINE_QDRANT_URL.") from error
