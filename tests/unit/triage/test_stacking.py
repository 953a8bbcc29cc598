from __future__ import annotations

import numpy as np

from core.triage.stacking import fit_stack

RANDOM = np.random.default_rng(7)
OWNERS = RANDOM.integers(0, 4, 300).astype(np.int32)
NOTHING = np.zeros((300, 4))


def test_a_signal_counts_as_much_as_it_is_worth() -> None:
    telling, noise = np.eye(4)[OWNERS] * 0.6 + RANDOM.random((300, 4)) * 0.3, RANDOM.random((300, 4))
    signals = np.stack([telling, noise], axis=2)
    stack = fit_stack(signals, NOTHING, NOTHING, OWNERS)
    assert (stack.probabilities(signals, NOTHING, NOTHING).argmax(axis=1) == OWNERS).mean() > 0.95
    swapped = stack.probabilities(np.stack([noise, telling], axis=2), NOTHING, NOTHING)
    assert (swapped.argmax(axis=1) == OWNERS).mean() < 0.5


def test_where_nothing_speaks_every_team_is_as_probable() -> None:
    stack = fit_stack(RANDOM.random((300, 4, 1)), NOTHING, NOTHING, OWNERS)
    assert np.allclose(stack.probabilities(np.zeros((5, 1)), np.zeros(5), np.zeros(5)), 0.2)
