from __future__ import annotations

import numpy as np
import pytest

from core.triage.neighbours import neighbour_signals

OWNERS = np.array([0, 0, 2], np.int32)
LIKENESS = np.array([[0.2, 0.4, 0.6], [0.0, 0.0, 0.0]])


def test_a_narrow_circle_listens_to_the_nearest_more_than_a_wide_one() -> None:
    wide, narrow, nearest = neighbour_signals(LIKENESS, OWNERS, 3, (1, 3))
    assert wide[0] == pytest.approx([0.5, 0.0, 0.5])
    assert narrow[0, 2] > 0.7
    assert nearest[0] == pytest.approx([0.4, 0.0, 0.6])


def test_where_nothing_is_alike_nobody_has_a_vote() -> None:
    assert not any(signal[1].any() for signal in neighbour_signals(LIKENESS, OWNERS, 3, (1, 3)))
