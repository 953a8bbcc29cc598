"""Other embedding models: an endpoint as OpenAI's (`/v1/embeddings`), and sentence-transformers (extra `embeddings`)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from adapters.embeddings import prefixes
from adapters.http import client_session
from adapters.llama.connection import LlamaConnection, RequestRefused
from core.model.errors import ConfigurationError, ModelUnavailable, PromptTooLong

FORM = "http://HOST:PORT/v1#MODEL:DIMENSIONS"
KEY = "PLUMBLINE_EMBEDDINGS_API_KEY"
REQUEST_BATCH = 32  # texts per request
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
        # The name is what an index remembers: vectors of another length are another model's, and all are made anew.
        self._model, self.name = named["model"], f"{named['model']}:{named['dimensions']}"
        self.dimensions = int(named["dimensions"])
        self._query, self._passage = prefixes(self._model)

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        sent = [f"{self._passage}{text[:LONGEST]}" for text in texts]
        rows = [
            await self._rows(sent[start : start + REQUEST_BATCH], DEADLINE)
            for start in range(0, len(sent), REQUEST_BATCH)
        ]
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
        body = {"model": self._model, "input": list(texts)}
        try:
            async with asyncio.timeout(deadline), client_session() as session:
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


MODEL_BATCH = 32  # texts per batch


class SentenceTransformerEmbedder:
    """A model by its name on the hub, or in a folder. It runs in a thread: a query takes 1 to 10 ms on a CPU.

    Raises ModelUnavailable if the model fails, mostly for lack of memory.
    """

    def __init__(self, model: str) -> None:
        """Load the model. Raises ConfigurationError if the extra is missing or the model cannot be loaded.

        Of the ONNX files in the `onnx` folder of a model, an 8-bit quantised one is preferred.
        """
        try:
            # Optional and slow to import, so only imported if configured.
            sentence_transformers: Any = import_module("sentence_transformers")
        except ImportError as error:
            raise ConfigurationError(
                f"PLUMBLINE_EMBEDDINGS={model} needs sentence-transformers: install plumbline-bot[embeddings]."
            ) from error
        files = sorted(Path(model).glob("onnx/*.onnx"), key=lambda file: ("int8" not in file.name, file.name))
        backend: dict[str, Any] = (
            {"backend": "onnx", "model_kwargs": {"file_name": f"onnx/{files[0].name}"}} if files else {}
        )
        try:
            self._model: Any = sentence_transformers.SentenceTransformer(model, device="cpu", **backend)
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"The embedding model {model} cannot be loaded: {error}") from error
        self.name = model
        self._query, self._passage = prefixes(model)

    @property
    def dimensions(self) -> int:
        return int(self._model.get_embedding_dimension())

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return await asyncio.to_thread(self._encode, [f"{self._passage}{text}" for text in texts])

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return (await asyncio.to_thread(self._encode, [f"{self._query}{text}"]))[0]

    def _encode(self, texts: list[str]) -> NDArray[np.float32]:
        try:
            vectors = self._model.encode(
                texts, batch_size=MODEL_BATCH, normalize_embeddings=True, show_progress_bar=False
            )
        except Exception as error:  # torch, onnxruntime and tokenizers have different errors
            raise ModelUnavailable(f"The embedding model {self.name} failed: {error}") from error
        return np.asarray(vectors, np.float32).reshape(len(texts), self.dimensions)
