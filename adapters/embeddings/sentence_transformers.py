"""A sentence-transformers model as an Embedder (extra `embeddings`), with ONNX if its folder contains such a file."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapters.embeddings import prefixes
from core.model.errors import ConfigurationError, ModelUnavailable

BATCH = 32  # texts per batch


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
                f"PLUMBLINE_EMBEDDINGS={model} needs sentence-transformers: install plumbline[embeddings]."
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
            vectors = self._model.encode(texts, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False)
        except Exception as error:  # torch, onnxruntime and tokenizers have different errors
            raise ModelUnavailable(f"The embedding model {self.name} failed: {error}") from error
        return np.asarray(vectors, np.float32).reshape(len(texts), self.dimensions)
