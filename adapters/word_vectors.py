"""Pretrained word vectors as an Embedder (extra `words`): a text is the mean of its tokens' vectors.

The vectors are in the wheel of WordLlama, of which only two files are used: importing it would configure logging and
enable access to a model hub.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.model.errors import ConfigurationError

DIMENSIONS = 128  # of the 256 stored; trained so that the first ones can be used alone (Kusupati et al. 2022)
BATCH = 256  # texts per tokenization

_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TABLE = "embedding.weight"
_EMPTY = " "  # the tokenizer has a token for it, but none for an empty text


class WordVectorEmbedder:
    """An Embedder mainly for English words. A query takes 0.03 ms."""

    name = "words"
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        """Load the vectors. Raises ConfigurationError if the extra is missing."""
        folder = _folder()
        try:
            # Optional, so only imported if configured.
            tokenizers: Any = import_module("tokenizers")
            safetensors: Any = import_module("safetensors")
            self._tokenizer: Any = tokenizers.Tokenizer.from_file(str(folder / _TOKENIZER))
            with safetensors.safe_open(folder / _WEIGHTS, framework="numpy") as file:
                self._vectors: NDArray[np.float16] = file.get_slice(_TABLE)[:, :DIMENSIONS]
        except (ImportError, OSError) as error:
            raise ConfigurationError(
                f"PLUMBLINE_EMBEDDINGS=words cannot be loaded ({error}): install plumbline[words]."
            ) from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return await asyncio.to_thread(self._embedded, texts)

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return self._embedded([text])[0]

    def _embedded(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.empty((len(texts), DIMENSIONS), np.float32)
        for begin in range(0, len(texts), BATCH):
            batch = [_readable(text) or _EMPTY for text in texts[begin : begin + BATCH]]
            for row, found in enumerate(self._tokenizer.encode_batch(batch, add_special_tokens=False), begin):
                rows[row] = self._vectors[found.ids].mean(axis=0, dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _readable(text: str) -> str:
    """Return the text without lone surrogates, which the tokenizer rejects."""
    return text.encode(errors="replace").decode()


def _folder() -> Path:
    found = find_spec("wordllama")
    if found is None or found.origin is None:
        raise ConfigurationError("PLUMBLINE_EMBEDDINGS=words needs word vectors: install plumbline[words].")
    return Path(found.origin).parent
