"""Vectors of known texts, such as those of the sample company, so that no model has to read them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.ports import Embedder

DIGEST = 12  # bytes


class KnownVectors:
    """An Embedder that takes the vectors of known texts from a file, and asks another one for the rest.

    The file has the model's name in a line, then the digest and the vector of each text, a byte for each dimension.
    """

    def __init__(self, embedder: Embedder, file: Path) -> None:
        """Read the file. Vectors of another model than that of `embedder` are not used."""
        self.name, self.dimensions = embedder.name, embedder.dimensions
        self.embed_query = embedder.embed_query
        self._embedder = embedder
        model, _, content = file.read_bytes().partition(b"\n")
        rows = np.frombuffer(content if model.decode() == self.name else b"", np.int8)
        self._vectors = {row[:DIGEST].tobytes(): row[DIGEST:] for row in rows.reshape(-1, DIGEST + self.dimensions)}

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors: dict[str, NDArray[Any]] = {
            text: self._vectors[key] for text in texts if (key := digest(text)) in self._vectors
        }
        missing = [text for text in dict.fromkeys(texts) if text not in vectors]
        vectors |= zip(missing, await self._embedder.embed_passages(missing) if missing else (), strict=True)
        rows = np.array([vectors[text] for text in texts], np.float32).reshape(-1, self.dimensions)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=DIGEST).digest()
