"""Gradient-boosted trees (Friedman 2001) as plain arrays: scikit-learn grows them, and nobody needs it to ask them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

TREES = 150
LEAVES = 15  # of a tree
DEPTH = 8  # of a tree
RATE = 0.06  # at which each tree mends what the trees before it left
MIN_ROWS = 60  # of a leaf
PENALTY = 20.0  # on the squared values of the leaves
TRIED = 0.25  # share of the features of which each node takes the best
SEED = 7


@dataclass(frozen=True, slots=True)
class BoostedTrees:
    """The nodes of all trees: a row whose feature is at most the threshold goes to `left`, else to `right`.

    Tree `i` begins at node `roots[i]`. A leaf leads to itself; its value is in log odds, and 0 elsewhere.
    """

    base: np.float64
    roots: NDArray[np.int32]
    features: NDArray[np.int32]
    thresholds: FloatArray
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    values: FloatArray

    @classmethod
    def of(cls, model: Any) -> Self:
        """Of a fitted HistGradientBoostingClassifier of two classes, for which there is no public way to its nodes."""
        trees: list[Any] = [tree.nodes for (tree,) in model._predictors]  # noqa: SLF001
        sizes = [len(tree) for tree in trees]
        roots = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        nodes = np.concatenate(trees)
        own, offset = np.arange(len(nodes)), np.repeat(roots, sizes)
        leaf = nodes["is_leaf"].astype(bool)
        return cls(
            np.ravel(model._baseline_prediction)[0],  # noqa: SLF001
            roots.astype(np.int32),
            np.where(leaf, 0, nodes["feature_idx"]).astype(np.int32),
            np.where(leaf, np.inf, nodes["num_threshold"]),
            np.where(leaf, own, offset + nodes["left"]).astype(np.int32),
            np.where(leaf, own, offset + nodes["right"]).astype(np.int32),
            np.where(leaf, nodes["value"], 0.0),
        )

    def log_odds(self, rows: FloatArray) -> FloatArray:
        """For each row of features, shape (rows, features), that it is a right one."""
        number = np.arange(len(rows))[:, np.newaxis]
        nodes = np.repeat(self.roots[np.newaxis], len(rows), axis=0)
        for _ in range(DEPTH):
            low = rows[number, self.features[nodes]] <= self.thresholds[nodes]
            nodes = np.where(low, self.left[nodes], self.right[nodes])
        return self.base + self.values[nodes].sum(axis=1)


def fit_trees(rows: FloatArray, right: NDArray[np.bool_]) -> BoostedTrees:
    """Trees of most likelihood with their penalty; equal for equal rows, of shape (rows, features)."""
    grow: Any = import_module("sklearn.ensemble").HistGradientBoostingClassifier
    model = grow(
        learning_rate=RATE,
        max_iter=TREES,
        max_leaf_nodes=LEAVES,
        max_depth=DEPTH,
        min_samples_leaf=MIN_ROWS,
        l2_regularization=PENALTY,
        max_features=TRIED,
        early_stopping=False,
        random_state=SEED,
    )
    return BoostedTrees.of(model.fit(rows, right))
