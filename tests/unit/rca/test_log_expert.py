from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from core.ports import LogLine
from core.rca.log_lines import grouped, message_of, quote_of
from core.rca.signals import Signal, message_signals
from tests.fakes.outage import LENGTH, START, errors, minutes, traffic

TRACE = """Unhandled request
    at shop.Till.pay(Till.java:7)
    Caused by: shop.PoolException: no connection
    at shop.Pool.take(Pool.java:3)
    Caused by: java.util.concurrent.TimeoutException: 3000 ms
    at java.base/Thread.run(Thread.java:1)"""


def signals(*logs: Sequence[LogLine]) -> list[Signal]:
    lines = [line for lines in logs for line in lines]
    return message_signals(grouped(lines), minutes(-LENGTH), minutes(-30), START)


def test_ordinary_traffic_shows_nothing() -> None:
    assert signals(traffic("shop")) == []


def test_a_new_error_is_a_sign_since_its_first_record() -> None:
    new = errors("shop", "no connection", since=-10)
    (found,) = signals(traffic("shop"), new)
    assert (found.service, found.since, found.trouble) == ("shop", new[0].at, True)
    assert found.what == "logged a new error 120 times, “no connection request=0”"
    assert found.evidence.quote == new[0].text


def test_a_single_new_error_is_a_weak_sign() -> None:
    (once,) = signals(traffic("shop"), errors("shop", "no connection", since=-1, per_minute=1))
    (often,) = signals(traffic("shop"), errors("shop", "no connection", since=-10))
    assert 0 < once.strength < 0.5 < often.strength <= 1


def test_a_burst_of_a_known_warning_is_a_sign_since_it_became_frequent() -> None:
    burst = [LogLine("shop", minutes(-8 + index / 30), "WARN", f"slow query took {index} ms") for index in range(240)]
    (found,) = signals(traffic("shop"), burst)
    assert found.what.startswith("logged the warning “slow query took")
    assert minutes(-9) <= found.since <= minutes(-7)


def test_a_new_message_that_does_not_complain_is_no_trouble() -> None:
    (found,) = signals(traffic("shop"), errors("shop", "configuration reloaded", since=-10, level="INFO"))
    assert not found.trouble
    assert found.strength < 0.5


def test_records_that_differ_in_numbers_and_ids_are_one_template() -> None:
    texts = ["took 12 ms rid=2f23883fa877", "took 9 ms rid=0a1b2c3d4e5f", "took 1500 ms rid=77"]
    (template,) = grouped([LogLine("shop", minutes(-1), "INFO", text) for text in texts])
    assert len(template.lines) == 3


def test_the_same_text_at_another_level_is_another_template() -> None:
    lines = [LogLine("shop", minutes(-1), level, "cannot reach stock") for level in ("INFO", "ERROR")]
    assert len(grouped(lines)) == 2


def test_a_stack_trace_is_told_by_its_first_line_and_its_innermost_cause() -> None:
    assert message_of(TRACE) == "Unhandled request Caused by: java.util.concurrent.TimeoutException: 3000 ms"
    assert all(line in TRACE for line in quote_of(TRACE).splitlines())


def test_two_traces_of_different_causes_are_different_templates() -> None:
    other = TRACE.replace("TimeoutException: 3000 ms", "DiskFullError: /var is full")
    assert len(grouped([LogLine("shop", minutes(-1), "ERROR", text) for text in (TRACE, other)])) == 2


@given(st.lists(st.tuples(st.text(max_size=80), st.sampled_from(["INFO", "ERROR", ""]), st.floats(-LENGTH, -0.01))))
def test_no_text_at_all_breaks_it(records: list[tuple[str, str, float]]) -> None:
    lines = [LogLine("shop", minutes(at), level, text) for text, level, at in records]
    for signal in signals(lines):
        assert 0 <= signal.strength <= 1
        assert signal.since >= minutes(-LENGTH)
