"""The softmax function."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Scalar = TypeVar("Scalar", np.float32, np.float64)


def softmax(scores: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return shares proportional to the exponentials of the scores; they sum to 1 over the last axis."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)
