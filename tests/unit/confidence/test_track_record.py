from __future__ import annotations

import pytest

from core.confidence.badge_explanation import TrackRecord, track_record

JUDGED = [(0.71, True), (0.8, True), (0.75, False), (0.7, True), (0.9, False)]


def test_only_badges_of_the_same_bin_count() -> None:
    assert track_record(0.78, JUDGED) == TrackRecord(0.7, 0.8, judged=3, right=2)


@pytest.mark.parametrize(
    ("probability", "bounds"), [(0.0, (0.0, 0.1)), (0.1, (0.0, 0.1)), (0.3, (0.2, 0.3)), (1.0, (0.9, 1.0))]
)
def test_a_bin_holds_its_upper_edge_and_the_first_one_both(probability: float, bounds: tuple[float, float]) -> None:
    found = track_record(probability, [(probability, True)])
    assert found is not None
    assert (found.above, found.up_to) == bounds


def test_an_empty_bin_has_no_record() -> None:
    assert track_record(0.5, JUDGED) is None
