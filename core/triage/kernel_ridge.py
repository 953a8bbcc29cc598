"""Kernel ridge regression, and what it would have said of each incident without having seen it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def kernel_ridge(
    kernel: NDArray[np.floating], ridge: float, targets: NDArray[np.float32], same: Sequence[NDArray[np.int64]]
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """The dual weights, and the score for each incident as if its block of `same` had been left out.

    `kernel` is used up: a fit has no room for copies of it.
    With G the inverse of the regularised kernel and a = G·targets, a block that is left out has residuals
    inv(G[block, block])·a[block] (Pahikkala et al. 2006), so that nothing is fitted twice.
    """
    from scipy.linalg import inv

    kernel[np.diag_indices(len(kernel))] += ridge
    inverse = inv(kernel, overwrite_a=True, assume_a="pos")
    dual = inverse @ targets
    residuals = dual / np.diag(inverse)[:, np.newaxis]
    for block in same:
        if len(block) > 1:
            residuals[block] = np.linalg.solve(inverse[np.ix_(block, block)], dual[block])
    return dual.astype(np.float32), (targets - residuals).astype(np.float64)
