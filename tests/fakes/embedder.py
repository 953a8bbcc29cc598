"""An embedding model that knows which words mean the same, and nothing else of a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from core.model.errors import ModelUnavailable


class FakeEmbedder:
    """Texts with words of the same `senses` are near; `asked` are the texts that it embedded."""

    def __init__(self, senses: Mapping[str, int], name: str = "fake") -> None:
        self.name = name
        self.dimensions = max(senses.values()) + 2  # the last for what it does not understand
        self.asked: list[str] = []
        self.failing = False
        self._senses = senses

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.failing:
            raise ModelUnavailable("The embedding model failed.")
        self.asked += texts
        vectors = [self._vector(text) for text in texts]
        return np.array(vectors, np.float32) if vectors else np.empty((0, self.dimensions), np.float32)

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return (await self.embed_passages([text]))[0]

    def _vector(self, text: str) -> NDArray[np.float64]:
        counts = np.bincount(
            [self._senses.get(word, self.dimensions - 1) for word in text.lower().split()], minlength=self.dimensions
        )
        vector = counts + np.eye(self.dimensions)[-1] * 1e-3
        return vector / np.linalg.norm(vector)
