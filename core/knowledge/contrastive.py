"""Teaches the dense encoder from the corpus itself: what was taken out of a section is to find what is left of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from core.softmax import softmax

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Chosen on headings of public documentation, each removed from its page and asked: the means over several draws.
EPOCHS = 8  # each with other pairs: an epoch more of the same ones made what was learned hang on which they were
BATCH = 512  # pairs; each is told apart from the others of its batch
TEMPERATURE = 0.1  # of the cosines
LEARNING_RATE = 0.004  # at the first step, and nearly 0 at the last
ROW_LENGTH = 0.1  # mean length that a feature's row begins with: what the learning rate is a share of

_DECAY, _SQUARE_DECAY, _TINY = 0.9, 0.999, 1e-8  # the usual constants of Adam


def trained(
    components: NDArray[np.float32],
    drawn: Callable[[np.random.Generator], tuple[csr_array, csr_array]],
    generator: np.random.Generator,
) -> NDArray[np.float32]:
    """`components` after they were moved so that what is asked lies nearer to its body than to others.

    `drawn` gives what is asked and its bodies for one epoch: one text a row and one feature a column, TF-IDF weights.
    Symmetric cross-entropy over the cosines within a batch (Radford et al. 2021, figure 3), by Adam (Kingma and Ba 2015,
    algorithm 1) on the rows that a batch touches, with a learning rate that falls evenly to 0.
    """
    mean_length = float(np.linalg.norm(components, axis=1).mean())
    weights = components * np.float32(ROW_LENGTH / mean_length if mean_length else 1.0)
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    step = 0
    for epoch in range(EPOCHS):
        asked, bodies = drawn(generator)
        order = generator.permutation(np.flatnonzero((np.diff(asked.indptr) > 0) & (np.diff(bodies.indptr) > 0)))
        for begin in range(0, order.size, BATCH):
            chosen = order[begin : begin + BATCH]
            step += 1
            rate = LEARNING_RATE * (1 - (epoch + begin / order.size) / EPOCHS)
            rows, gradient = _gradient(weights, asked[chosen], bodies[chosen])
            mean = _DECAY * first[rows] + (1 - _DECAY) * gradient
            square = _SQUARE_DECAY * second[rows] + (1 - _SQUARE_DECAY) * gradient**2
            first[rows], second[rows] = mean, square
            root = np.sqrt(square / (1 - _SQUARE_DECAY**step)) + _TINY
            weights[rows] -= rate / (1 - _DECAY**step) * mean / root
    return weights


def _gradient(
    weights: NDArray[np.float32], asked: csr_array, bodies: csr_array
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """The features that a batch touches, and the gradient of the loss in their rows of `weights`."""
    # Only a fit needs it, and a running bot is spared the import.
    from scipy.sparse import csr_array, vstack

    both = csr_array(vstack([asked, bodies]))
    touched, columns = np.unique(both.indices, return_inverse=True)
    rows = touched.astype(np.intp)
    small = csr_array((both.data, columns, both.indptr), shape=(both.shape[0], rows.size))
    projected = np.asarray(small @ weights[rows])
    lengths = np.maximum(np.linalg.norm(projected, axis=1, keepdims=True), _TINY)
    units = projected / lengths
    count = asked.shape[0]
    left, right = units[:count], units[count:]
    logits = left @ right.T / TEMPERATURE
    errors = (softmax(logits) + softmax(logits.T).T - 2 * np.eye(count, dtype=np.float32)) / (count * TEMPERATURE)
    moved = np.concatenate([errors @ right, errors.T @ left])
    moved = (moved - (moved * units).sum(axis=1, keepdims=True) * units) / lengths
    return rows, np.asarray(small.T @ moved, np.float32)
