from __future__ import annotations

import numpy as np
import pytest

from core.confidence.measures import LATEST, measure_quality


def test_the_figures_of_honest_badges_lie_near_their_floor() -> None:
    generator = np.random.default_rng(1)
    shown = generator.random(500)
    correct = (generator.random(500) < shown).tolist()
    quality = measure_quality(tuple(zip(shown.tolist(), correct, strict=True)))
    assert quality is not None
    assert quality.ece_low <= quality.ece <= quality.ece_high
    assert quality.ece == pytest.approx(quality.ece_floor, abs=0.03)
    assert quality.auroc is not None
    assert quality.auroc > 0.75
    assert quality.brier < 0.25


def test_only_the_latest_badges_count() -> None:
    quality = measure_quality(((0.9, False),) * 10 + ((0.5, True), (0.5, False)) * (LATEST // 2))
    assert quality is not None
    assert (len(quality.shown), quality.ece) == (LATEST, 0.0)


def test_where_all_were_right_nothing_can_be_told_apart() -> None:
    quality = measure_quality(((0.8, True), (0.9, True)))
    assert quality is not None
    assert quality.auroc is None


def test_without_a_judged_percentage_there_is_nothing_to_measure() -> None:
    assert measure_quality(((None, True),)) is None
