"""A llama.cpp embedding server as an Embedder."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import aiohttp
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from adapters.llama.connection import LlamaConnection
from core.model.errors import ModelUnavailable

BATCH = 32  # texts per request
TIMEOUT = 60.0  # seconds per request


class _Row(BaseModel):
    index: int
    embedding: list[float]


class _Rows(BaseModel):
    data: list[_Row]


class LlamaEmbedder:
    """An Embedder for either server. Create it with `connect`, which detects the length of its vectors.

    Raises ModelUnavailable if the server does not answer or returns no embeddings.
    """

    def __init__(self, connection: LlamaConnection, model: str, dimensions: int) -> None:
        self._connection = connection
        self.name = model
        self.dimensions = dimensions

    @classmethod
    async def connect(
        cls, url: str, session: aiohttp.ClientSession, *, model: str = "", api_key: str = ""
    ) -> LlamaEmbedder:
        connection = LlamaConnection(url, session, api_key)
        embedder = cls(connection, model or connection.host, 0)
        embedder.dimensions = (await embedder.embed_query("length")).size
        return embedder

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [await self._rows(texts[begin : begin + BATCH]) for begin in range(0, len(texts), BATCH)]
        return np.concatenate(rows) if rows else np.empty((0, self.dimensions), np.float32)

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return (await self._rows([text]))[0]

    async def _rows(self, texts: Sequence[str]) -> NDArray[np.float32]:
        try:
            async with asyncio.timeout(TIMEOUT):
                answer = await self._connection.post("v1/embeddings", {"model": self.name, "input": list(texts)})
            rows = sorted(_Rows.model_validate(answer).data, key=lambda row: row.index)
            vectors = np.array([row.embedding for row in rows], np.float32)
        except TimeoutError as error:
            raise ModelUnavailable(
                f"The embedding server at {self._connection.host} did not answer in time."
            ) from error
        except (ValidationError, ValueError) as error:
            raise ModelUnavailable(f"The server at {self._connection.host} answered with no embeddings.") from error
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.all(lengths > 0):
            raise ModelUnavailable(f"The server at {self._connection.host} answered with no embeddings.")
        return vectors / lengths
