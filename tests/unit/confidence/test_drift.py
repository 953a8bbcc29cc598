from __future__ import annotations

from random import Random

import pytest

from core.confidence.measures import ENOUGH, RECENT, measure_drift
from core.model.badge import Verdict


def judged(shown: list[float], shift: float, seed: int) -> tuple[Verdict, ...]:
    """Drawn with the probabilities shown, made smaller or larger by `shift`."""
    random = Random(seed)
    return tuple((probability, random.random() < probability + shift) for probability in shown)


def badges(count: int, seed: int = 1) -> list[float]:
    random = Random(seed)
    return [random.choice((0.35, 0.6, 0.8, 0.9)) for _ in range(count)]


def test_few_outcomes_say_nothing() -> None:
    assert measure_drift(((0.9, False),) * (ENOUGH - 1) + ((None, False),) * ENOUGH) is None


@pytest.mark.parametrize("count", [ENOUGH, 100, RECENT])
def test_honest_badges_raise_no_alarm(count: int) -> None:
    alarms = 0
    for seed in range(10):
        shown = badges(count, seed)
        drift = measure_drift(judged(shown, 0.0, seed))
        assert drift is not None
        alarms += drift.alarming
    assert alarms <= 1


def test_badges_that_promise_too_much_raise_the_alarm() -> None:
    shown = badges(RECENT)
    drift = measure_drift(judged(shown, -0.3, seed=3))
    assert drift is not None
    assert drift.alarming
    assert drift.promised - drift.kept == pytest.approx(0.3, abs=0.1)


def test_only_the_latest_badges_count() -> None:
    old, new = [(0.9, False)] * RECENT, judged(badges(RECENT), 0.0, seed=5)
    drift = measure_drift((*old, *new))
    assert drift is not None
    assert (drift.alarming, drift.outcomes) == (False, RECENT)
