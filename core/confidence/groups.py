"""Offsets for teams and sources whose predictions are right more or less often than others with the same scores.

Partial pooling: every group has an offset in log-odds with a normal prior around 0, so groups with few labels stay
close to the pooled value. The spread of the prior is averaged by its likelihood on held-out labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.confidence.ensemble import FloatArray, softmax
from core.model.badge import NO_SURER

FOLDS = 5
USUAL_SPREAD = 0.5  # standard deviation of the half-normal prior on the spread, in log-odds
SPREADS = (0.0, 0.25, 0.5, 1.0, 2.0)  # candidate standard deviations of the offsets, in log-odds
NEWTON_STEPS = 20


def fit_offsets(probabilities: FloatArray, correct: FloatArray, groups: Sequence[str]) -> dict[str, float]:
    """Return each group's offset in log-odds.

    `probabilities` come from the pooled calibrator, `correct` is 0 or 1, and `groups` names each prediction's group
    (empty for none). All have the same length.
    """
    logits = log_odds(probabilities)
    names = np.array(groups, dtype=np.str_)
    folds = np.empty(len(names), dtype=np.intp)
    # The folds do not depend on the order of the labels.
    folds[np.lexsort((logits, correct, names))] = np.arange(len(names)) % FOLDS
    believed = [
        _held_out(logits, correct, names, folds, spread) - 0.5 * (spread / USUAL_SPREAD) ** 2 for spread in SPREADS
    ]
    fitted = [_offsets(logits, correct, names, spread) for spread in SPREADS]
    weights = softmax(np.array(believed)).tolist()
    return {
        name: sum(weight * offsets.get(name, 0.0) for weight, offsets in zip(weights, fitted, strict=True))
        for name in sorted(set(groups) - {""})
    }


def log_odds(probabilities: FloatArray) -> FloatArray:
    bounded = np.clip(probabilities, NO_SURER, 1 - NO_SURER)
    return np.log(bounded / (1 - bounded))


def _held_out(
    logits: FloatArray, correct: FloatArray, names: NDArray[np.str_], folds: NDArray[np.intp], spread: float
) -> float:
    """Return the log-likelihood of each fold's labels under offsets fitted to the other folds."""
    total = 0.0
    for fold in range(FOLDS):
        others, fold_mask = folds != fold, folds == fold
        offsets = _offsets(logits[others], correct[others], names[others], spread)
        moved = logits[fold_mask] + np.array([offsets.get(name, 0.0) for name in names[fold_mask].tolist()])
        total -= float(np.logaddexp(0.0, np.where(correct[fold_mask] > 0.5, -moved, moved)).sum())
    return total


def _offsets(logits: FloatArray, correct: FloatArray, names: NDArray[np.str_], spread: float) -> dict[str, float]:
    """Return the maximum a posteriori offset of each group, by Newton's method for all groups at once."""
    if not spread:
        return {}
    groups, group_of = np.unique(names, return_inverse=True)
    precision, offsets = 1 / spread**2, np.zeros(len(groups))
    for _ in range(NEWTON_STEPS):
        expected = 1 / (1 + np.exp(-(logits + offsets[group_of])))
        slope = np.bincount(group_of, correct - expected, len(groups)) - precision * offsets
        curvature = np.bincount(group_of, expected * (1 - expected), len(groups)) + precision
        offsets += slope / curvature
    return dict(zip(groups.tolist(), offsets.tolist(), strict=True))
