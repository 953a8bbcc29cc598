from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from core.confidence.ensemble import FloatArray, ascending


def shares(length: int = 8) -> st.SearchStrategy[FloatArray]:
    return arrays(float, length, elements=st.floats(0, 1))


@given(shares(), arrays(float, 8, elements=st.floats(0, 100)))
def test_the_result_ascends(values: FloatArray, weights: FloatArray) -> None:
    assert all(lower <= higher + 1e-12 for lower, higher in pairwise(ascending(values, weights)))


@given(shares(), arrays(float, 8, elements=st.floats(0.1, 100)))
def test_the_weighted_mean_stays(values: FloatArray, weights: FloatArray) -> None:
    assert ascending(values, weights) @ weights == pytest.approx(values @ weights)


@given(shares())
def test_ascending_values_stay_as_they_are(values: FloatArray) -> None:
    assert ascending(np.sort(values), np.ones(8)) == pytest.approx(np.sort(values))


def test_neighbours_in_the_wrong_order_share_their_weighted_mean() -> None:
    assert ascending(np.array([0.1, 0.8, 0.2, 0.9]), np.array([5.0, 1.0, 2.0, 5.0])) == pytest.approx(
        [0.1, 0.4, 0.4, 0.9]
    )


def test_a_value_without_weight_follows_its_neighbours() -> None:
    assert ascending(np.array([0.9, 0.3, 0.9]), np.array([0.0, 4.0, 4.0])) == pytest.approx([0.3, 0.3, 0.9])
