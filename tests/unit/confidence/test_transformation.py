from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.confidence.calibrator import CANDIDATES
from core.model.badge import RCE_ALONE, Transformation

share = st.floats(0, 1)


@given(st.sampled_from(CANDIDATES), share, share, share)
def test_a_score_is_a_share_and_rises_with_the_support(
    transformation: Transformation, coe: float, first: float, second: float
) -> None:
    low, high = (transformation.score(coe, rce) for rce in sorted([first, second]))
    assert -1e-12 <= low <= high + 1e-12
    assert high <= 1 + 1e-12


def test_what_cannot_be_decided_has_the_score_of_the_anchor_whatever_its_support() -> None:
    transformation = Transformation(weight=1.0, anchor=0.25)
    assert [transformation.score(0.0, rce) for rce in (0.0, 0.5, 1.0)] == [0.25] * 3
    assert [transformation.score(1.0, rce) for rce in (0.0, 0.5, 1.0)] == [0.0, 0.5, 1.0]


def test_with_no_weight_on_coe_the_score_is_rce() -> None:
    assert RCE_ALONE.score(0.0, 0.7) == pytest.approx(0.7)


def test_arrays_are_scored_element_by_element() -> None:
    transformation = Transformation(weight=2.0, anchor=0.5)
    coe, rce = np.array([0.0, 0.5, 1.0]), np.array([0.9, 0.9, 0.1])
    alone = [transformation.score(float(c), float(s)) for c, s in zip(coe, rce, strict=True)]
    assert transformation.score(coe, rce) == pytest.approx(alone)
