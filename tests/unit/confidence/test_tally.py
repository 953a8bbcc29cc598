from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.confidence.ensemble import Tally, count

counts = st.lists(st.integers(0, 30), min_size=4, max_size=4)


@given(counts, counts, st.integers(1, 7))
def test_every_label_is_dealt_once_and_evenly(right: list[int], wrong: list[int], hands: int) -> None:
    tally = Tally(np.arange(4.0), np.array(right, float), np.array(wrong, float))
    parts = tally.deal(hands)
    assert np.sum([part.right for part in parts], axis=0) == pytest.approx(tally.right)
    assert np.sum([part.wrong for part in parts], axis=0) == pytest.approx(tally.wrong)
    for kind in ("right", "wrong"):
        sizes = [getattr(part, kind).sum() for part in parts]
        assert max(sizes) - min(sizes) <= 1


def test_what_is_left_without_a_part_is_the_rest() -> None:
    tally = Tally(np.array([0.2, 0.8]), right=np.array([1.0, 4.0]), wrong=np.array([3.0, 0.0]))
    rest = tally.without(Tally(tally.levels, right=np.array([0.0, 3.0]), wrong=np.array([1.0, 0.0])))
    assert rest.counts.tolist() == [3.0, 1.0]


def test_scores_count_at_themselves_or_at_the_nearest_level() -> None:
    scores, correct = np.array([0.9, 0.1, 0.9, 0.14]), np.array([1.0, 0.0, 0.0, 1.0])
    alone = count(scores, correct)
    assert (alone.levels.tolist(), alone.right.tolist(), alone.wrong.tolist()) == (
        [0.1, 0.14, 0.9],
        [0.0, 1.0, 1.0],
        [1.0, 0.0, 1.0],
    )
    nearest = count(scores, correct, np.array([0.0, 0.2, 1.0]))
    assert (nearest.right.tolist(), nearest.wrong.tolist()) == ([0.0, 1.0, 1.0], [1.0, 0.0, 1.0])


def test_scores_that_differ_only_by_rounding_are_one_level() -> None:
    assert count(np.array([0.8, 0.7999999999999998]), np.array([1.0, 0.0])).counts.tolist() == [2.0]
