from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.ports import Series
from core.rca.signals import Signal, metric_signals
from tests.fakes.outage import gauge, minutes


def moved(value: Callable[[float], float], metric: str = "pending") -> list[Signal]:
    return metric_signals([gauge("shop", metric, value)], minutes(-30))


def test_a_steady_metric_shows_nothing() -> None:
    assert moved(lambda _: 5.0) == []


def test_a_rise_is_a_sign_since_the_first_unusual_point() -> None:
    (found,) = moved(lambda offset: 0.4 if offset < -10 else 3.0)
    assert (found.service, found.since) == ("shop", minutes(-10))
    assert found.what.startswith("pending rose from 0.4 to ")
    assert found.strength > 0.5


def test_a_rise_from_zero_is_a_sign() -> None:
    (found,) = moved(lambda offset: 0 if offset < -7 else 3)
    assert found.since == minutes(-7)


def test_one_stray_point_is_no_sign() -> None:
    assert moved(lambda offset: 50.0 if offset == -10 else 5.0) == []


def test_a_slow_drift_is_no_sign() -> None:
    assert moved(lambda offset: 100 + offset / 6) == []


def test_what_was_as_far_off_before_is_no_sign() -> None:
    assert moved(lambda offset: 40.0 if int(offset) % 10 == 0 else 5.0) == []


def test_a_movement_before_the_suspect_time_is_the_usual() -> None:
    assert moved(lambda offset: 1.0 if offset < -50 else 30.0) == []


def test_a_counter_moves_when_it_grows_faster() -> None:
    steady = moved(lambda offset: (offset + 60) * 10, "requests_total")
    faster = moved(lambda offset: (offset + 60) * 10 + max(0, offset + 10) * 500, "requests_total")
    assert steady == []
    assert len(faster) == 1


@pytest.mark.parametrize("value", [math.nan, 0.0])
def test_a_metric_that_says_nothing_shows_nothing(value: float) -> None:
    assert moved(lambda _: value) == []


def test_missing_values_are_skipped() -> None:
    (found,) = moved(lambda offset: math.nan if int(offset * 2) % 3 == 0 else (1.0 if offset < -10 else 9.0))
    assert found.since >= minutes(-10)


def test_too_short_a_series_shows_nothing() -> None:
    series = Series("shop", "pending", (minutes(-31), minutes(-1), minutes(-0.5)), (0.0, 9.0, 9.0))
    assert metric_signals([series, Series("shop", "empty", (), ())], minutes(-30)) == []


@given(st.lists(st.floats(allow_nan=True, allow_infinity=False, width=32), min_size=24, max_size=24))
def test_no_values_at_all_break_it(values: list[float]) -> None:
    series = Series("shop", "m_total", tuple(minutes(-60 + index * 2.5) for index in range(24)), tuple(values))
    for signal in metric_signals([series], minutes(-30)):
        assert 0 <= signal.strength <= 1


@pytest.mark.parametrize("begins", [-45, -40, -34])
@pytest.mark.parametrize("noise", [0.0, 0.05, 0.2])
def test_a_creep_dates_from_the_first_value_outside_of_its_baseline(begins: int, noise: float) -> None:
    def value(offset: float) -> float:
        return 10 + noise * math.sin(offset * 11) + max(0.0, offset - begins)

    series = gauge("shop", "heap_used", value)
    (found,) = metric_signals([series], minutes(-30))
    before = [each for at, each in zip(series.times, series.values, strict=True) if at < minutes(begins)]
    assert found.creeps
    assert found.since >= minutes(begins)
    assert dict(zip(series.times, series.values, strict=True))[found.since] > max(before)


@pytest.mark.parametrize("top", [1.0, 0.97, 100.0])
def test_a_movement_names_only_values_that_were_measured(top: float) -> None:
    shapes = {
        "share": lambda offset: min(top, top * 0.1 + max(0.0, offset + 45) * top / 30),
        "ratio": lambda offset: top * 0.1 if offset < -9 else top,
        "part": lambda offset: top * 0.2 if offset < -9 else top * 0.9 + 0.001 * offset,
    }
    for name, shape in shapes.items():
        series = gauge("shop", name, shape)
        capped = replace(series, values=tuple(min(top, value) for value in series.values))
        shown = {f"{value:.3g}" for value in capped.values}
        for found in metric_signals([capped], minutes(-30)):
            numbers = re.findall(r"(?:from|to) ([\d.]+)", found.evidence.quote)
            assert len(numbers) == 2
            assert set(numbers) <= shown
