"""When a model server is left alone, and when it is tried again."""

from __future__ import annotations

from adapters.model_pool.server import FAILURES, MEMORY, PAUSE, BreakerState, CircuitBreaker
from tests.fakes.clock import FakeClock


def broken(clock: FakeClock) -> CircuitBreaker:
    breaker = CircuitBreaker(clock)
    for _ in range(FAILURES):
        breaker.failed()
    return breaker


def test_failures_in_a_row_open_it() -> None:
    assert broken(FakeClock()).state is BreakerState.OPEN


def test_failures_that_lie_far_apart_do_not() -> None:
    clock = FakeClock()
    breaker = CircuitBreaker(clock)
    for _ in range(FAILURES):
        breaker.failed()
        clock.advance(MEMORY.total_seconds() + 1)
    assert breaker.state is BreakerState.CLOSED


def test_a_trial_that_fails_opens_it_again_however_late() -> None:
    clock = FakeClock()
    breaker = broken(clock)
    clock.advance((PAUSE + 2 * MEMORY).total_seconds())
    breaker.started()
    breaker.failed()
    assert breaker.state is BreakerState.OPEN


def test_a_trial_that_succeeds_closes_it() -> None:
    clock = FakeClock()
    breaker = broken(clock)
    clock.advance(PAUSE.total_seconds())
    breaker.started()
    breaker.succeeded()
    assert breaker.state is BreakerState.CLOSED
