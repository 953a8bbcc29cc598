from __future__ import annotations

from datetime import UTC, datetime

import pytest

from core.model.badge import Badge, Strength


def test_a_calibrated_badge_shows_its_percentage() -> None:
    cases: list[tuple[float, str]] = [
        (0.0, "●○○ 0 %"),
        (0.4949, "●○○ 49 %"),
        (0.5, "●●○ 50 %"),
        (0.79, "●●○ 79 %"),
        (0.8, "●●● 80 %"),
        (0.86, "●●● 86 %"),
        (1.0, "●●● 100 %"),
    ]
    for probability, text in cases:
        assert Badge(Strength.WEAK, probability).text == text, (probability, text)


@pytest.mark.parametrize(
    ("probability", "text"), [(0.496, "●●○ 50 %"), (0.4999, "●●○ 50 %"), (0.796, "●●● 80 %"), (0.7999, "●●● 80 %")]
)
def test_the_dots_agree_with_the_percentage_beside_them(probability: float, text: str) -> None:
    assert Badge(Strength.WEAK, probability).text == text


@pytest.mark.parametrize(
    ("strength", "word"), [(Strength.STRONG, "strong"), (Strength.MODERATE, ""), (Strength.WEAK, "unsure")]
)
def test_without_a_calibration_there_is_one_word_at_most(strength: Strength, word: str) -> None:
    badge = Badge(strength, outcomes=7)
    assert badge.text == word
    assert "7 such claims" in badge.explanation


def test_the_explanation_says_what_the_number_rests_on() -> None:
    badge = Badge(Strength.STRONG, 0.86, outcomes=120, fitted_at=datetime(2026, 3, 1, 3, tzinfo=UTC))
    assert badge.explanation == "Calibrated on 120 claims that people judged, fitted 2026-03-01."
