from __future__ import annotations

from core.ports import Span
from core.rca.span_expert import CallCounts, span_signals
from tests.fakes.outage import minutes


def span(at: float, milliseconds: float = 20, **fields: object) -> Span:
    return Span("shop", "GET /items", minutes(at), milliseconds, **fields)  # type: ignore[arg-type]


def every_minute(first: int, last: int, **fields: object) -> list[Span]:
    return [span(at, **fields) for at in range(first, last)]  # type: ignore[arg-type]


def test_ordinary_requests_show_nothing() -> None:
    assert span_signals(every_minute(-60, 0), minutes(-30)) == []


def test_failures_are_a_sign_since_they_became_frequent() -> None:
    failing = every_minute(-8, 0, failed=True, message="pool exhausted")
    (sign,) = span_signals(
        [*every_minute(-60, -20), span(-19, failed=True), *every_minute(-18, -8), *failing], minutes(-30)
    )
    assert sign.since == minutes(-8)
    assert sign.own
    assert "pool exhausted" in sign.evidence.quote
    assert sign.strength > 0.8


def test_a_failure_that_comes_from_below_is_passed_on() -> None:
    failing = every_minute(-8, 0, failed=True, failed_below=True)
    (sign,) = span_signals([*every_minute(-60, -8), *failing], minutes(-30))
    assert not sign.own


def test_only_time_of_its_own_makes_an_operation_slow() -> None:
    below = every_minute(-8, 0, milliseconds=500, below=480)
    assert span_signals([*every_minute(-60, -8), *below], minutes(-30)) == []
    (sign,) = span_signals([*every_minute(-60, -8), *every_minute(-8, 0, milliseconds=500)], minutes(-30))
    assert "20 to 500 ms" in sign.evidence.quote


def test_more_calls_for_each_request_are_counted() -> None:
    served = every_minute(-20, 0)
    calls = [
        Span("stock", "GET", minutes(at), 1, caller="shop") for at in range(-20, 0) for _ in range(1 if at < -10 else 5)
    ]
    assert CallCounts([*served, *calls]).for_each_request("shop", "stock", minutes(-10)) == (1.0, 5.0)
