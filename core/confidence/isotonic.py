"""Isotonic regression."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from core.confidence.tally import FloatArray


def ascending(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the non-decreasing values closest to `values` in weighted squares (pool adjacent violators).

    Weights are at least 0; a value with weight 0 follows its neighbours.
    """
    blocks: list[_Block] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        block = _Block(value, weight, 1)
        while blocks and blocks[-1].mean >= block.mean:
            block = _pooled(blocks.pop(), block)
        blocks.append(block)
    return np.repeat([block.mean for block in blocks], [block.length for block in blocks])


class _Block(NamedTuple):
    mean: float
    weight: float
    length: int


def _pooled(below: _Block, above: _Block) -> _Block:
    weight = below.weight + above.weight
    mean = (below.mean * below.weight + above.mean * above.weight) / weight if weight else below.mean
    return _Block(mean, weight, below.length + above.length)
