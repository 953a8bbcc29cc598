"""Kernel ridge regression, and what it would have said of incidents that were left out."""

from __future__ import annotations

import tracemalloc

import numpy as np

from core.triage.kernel_ridge import kernel_ridge

RIDGE = 0.1


def test_what_is_said_of_a_block_is_what_a_fit_without_it_says() -> None:
    generator = np.random.default_rng(1)
    vectors = generator.normal(size=(12, 5))
    kernel = (vectors @ vectors.T).astype(np.float32)
    targets = np.eye(3, dtype=np.float32)[generator.integers(0, 3, 12)]
    blocks = [np.array([0, 4, 7]), *(np.array([row]) for row in range(12) if row not in (0, 4, 7))]
    _, held_out = kernel_ridge(kernel.copy(), RIDGE, targets, blocks)
    for block in blocks:
        rest = np.setdiff1d(np.arange(12), block)
        weights = np.linalg.solve(kernel[np.ix_(rest, rest)] + RIDGE * np.eye(len(rest)), targets[rest])
        np.testing.assert_allclose(held_out[block], kernel[np.ix_(block, rest)] @ weights, atol=1e-3)


def test_a_fit_takes_the_room_of_no_second_copy_of_the_kernel() -> None:
    size = 500
    kernel = np.eye(size, dtype=np.float32)
    targets, blocks = np.ones((size, 1), np.float32), [np.array([row]) for row in range(size)]
    kernel_ridge(np.eye(2, dtype=np.float32), RIDGE, targets[:2], blocks[:2])  # imports what it needs
    tracemalloc.start()
    kernel_ridge(kernel, RIDGE, targets, blocks)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.5 * kernel.nbytes
