"""An embeddings endpoint as OpenAI's (`/v1/embeddings`) as an Embedder: llama.cpp's `llama-server --embedding` and others."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

import aiohttp
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from adapters.embeddings import prefixes
from adapters.llama.connection import LlamaConnection, RequestRefused
from core.model.errors import ConfigurationError, ModelUnavailable, PromptTooLong

FORM = "http://HOST:PORT/v1#MODEL:DIMENSIONS"
KEY = "PLUMBLINE_EMBEDDINGS_API_KEY"
BATCH = 32  # texts per request
LONGEST = 2_000  # characters sent of a text
SHORTEST = 100  # characters that any model reads
DEADLINE = 60.0  # seconds per request with passages
QUERY_DEADLINE = 2.0  # seconds for a question, which is then searched for by its words

_ADDRESS = re.compile(r"(?P<url>https?://[^#\s]+)#(?P<model>[^#\s]+):(?P<dimensions>[1-9]\d{0,4})")


class _Row(BaseModel):
    index: int
    embedding: list[float]


class _Rows(BaseModel):
    data: list[_Row]


class ServerEmbedder:
    """A model of a server. Both are named, so that the bot also starts while the server does not answer.

    Raises ModelUnavailable if the server fails, or answers with vectors of another length.
    """

    def __init__(self, address: str, api_key: str = "") -> None:
        """Take the address, of the form FORM. Raises ConfigurationError for another form."""
        if not (named := _ADDRESS.fullmatch(address)):
            raise ConfigurationError(f"PLUMBLINE_EMBEDDINGS={address} is not of the form {FORM}.")
        self._url = named["url"]
        self._api_key = api_key
        self.name = named["model"]
        self.dimensions = int(named["dimensions"])
        self._query, self._passage = prefixes(self.name)

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        sent = [f"{self._passage}{text[:LONGEST]}" for text in texts]
        rows = [await self._rows(sent[start : start + BATCH], DEADLINE) for start in range(0, len(sent), BATCH)]
        return np.concatenate([np.empty((0, self.dimensions), np.float32), *rows])

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return (await self._rows([f"{self._query}{text[:LONGEST]}"], QUERY_DEADLINE))[0]

    async def _rows(self, texts: Sequence[str], deadline: float) -> NDArray[np.float32]:
        """Return a row for each text. A text that is refused, mostly for its length, is read to its half or less."""
        try:
            return await self._embedded(texts, deadline)
        except (RequestRefused, PromptTooLong) as error:
            if len(texts) > 1:
                return np.concatenate([await self._rows([each], deadline) for each in texts])
            if len(texts[0]) <= SHORTEST:
                raise ModelUnavailable(str(error)) from error
            return await self._rows([texts[0][: len(texts[0]) // 2]], deadline)

    async def _embedded(self, texts: Sequence[str], deadline: float) -> NDArray[np.float32]:
        body = {"model": self.name, "input": list(texts)}
        try:
            async with asyncio.timeout(deadline), aiohttp.ClientSession() as session:
                answer = await LlamaConnection(self._url, session, self._api_key, KEY).post("v1/embeddings", body)
        except TimeoutError as error:
            raise ModelUnavailable(f"The embedding model {self.name} did not answer in time.") from error
        try:
            rows = sorted(_Rows.model_validate(answer).data, key=lambda row: row.index)
            vectors = np.array([row.embedding for row in rows], np.float32)
        except (ValidationError, ValueError) as error:
            raise ModelUnavailable(f"The server of {self.name} answered with no embeddings.") from error
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        if vectors.shape != (len(texts), self.dimensions) or not (np.isfinite(lengths).all() and np.all(lengths > 0)):
            raise ModelUnavailable(
                f"The server of {self.name} answered with other vectors than {self.dimensions} numbers for each text."
            )
        return vectors / lengths
