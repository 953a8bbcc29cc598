"""The vectors of a passage's chunks, made when it is ingested, so that a question costs one encoding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.model.document import Passage

STEPS = 127  # of a dimension of a unit vector on either side of 0; the cosine stays right to about 0.01


def packed(vectors: NDArray[np.float32]) -> bytes:
    """Return unit vectors, of one row or several, with one byte a dimension."""
    return np.rint(STEPS * vectors).astype(np.int8).tobytes()


def divided(meaning: bytes, count: int) -> list[bytes]:
    """Return packed vectors one by one."""
    size = len(meaning) // count
    return [meaning[start : start + size] for start in range(0, len(meaning), size)]


def cosines(passage: Passage, query: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the cosine of each chunk of a passage with a query; none if the passage has no vectors of this length."""
    if not query.size or len(passage.meaning) % query.size:
        return np.empty(0, np.float32)
    return unpacked(passage, query.size) @ query


def unpacked(passage: Passage, dimensions: int) -> NDArray[np.float32]:
    """Return the vectors of a passage's chunks, one a row."""
    return np.frombuffer(passage.meaning, np.int8).reshape(-1, dimensions).astype(np.float32) / np.float32(STEPS)
