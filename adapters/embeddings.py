"""A sentence-transformers model as Embedder (extra `embeddings`)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import ConfigurationError

BATCH = 32  # texts embedded at once


class SentenceTransformerEmbedder:
    """A model by name or path. It runs in a thread: a query takes 1 to 10 ms on a CPU."""

    def __init__(self, model: str, backend: str = "torch") -> None:
        """Load the model. Raises ConfigurationError if the extra is missing or the model cannot be loaded."""
        try:
            # Optional and slow to import: only who configures it pays.
            sentence_transformers: Any = import_module("sentence_transformers")
        except ImportError as error:
            raise ConfigurationError(
                f"PLUMBLINE_EMBEDDINGS={model} needs sentence-transformers: install plumbline[embeddings]."
            ) from error
        try:
            self._model: Any = sentence_transformers.SentenceTransformer(model, backend=backend, device="cpu")
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"The embedding model {model} cannot be loaded: {error}") from error
        self.name = model

    @property
    def dimensions(self) -> int:
        return int(self._model.get_sentence_embedding_dimension())

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return await asyncio.to_thread(self._encode, list(texts))

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return (await asyncio.to_thread(self._encode, [text]))[0]

    def _encode(self, texts: list[str]) -> NDArray[np.float32]:
        vectors = self._model.encode(texts, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, np.float32)
