from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from core.model import running
from core.model.running import TokenBuckets, client_key
from tests.cases import every_case

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def test_a_burst_is_let_through_and_then_as_many_as_come_back() -> None:
    limit = TokenBuckets(per_second=2.0, burst=3)
    assert [limit.take("a", NOW) for _ in range(3)] == [0, 0, 0]
    assert limit.take("a", NOW) == pytest.approx(0.5)
    assert limit.take("a", at(0.5)) == 0
    assert limit.take("a", at(0.75)) == pytest.approx(0.25)


def test_a_long_silence_saves_no_more_than_the_burst() -> None:
    limit = TokenBuckets(per_second=100.0, burst=2)
    assert limit.take("a", NOW) == 0
    assert [limit.take("a", at(3600)) == 0 for _ in range(3)] == [True, True, False]


def test_one_client_takes_nothing_from_another() -> None:
    limit = TokenBuckets(per_second=1.0, burst=1)
    assert limit.take("a", NOW) == 0
    assert limit.take("a", NOW) > 0
    assert limit.take("b", NOW) == 0


def test_who_is_refused_is_not_kept_waiting_for_longer_by_asking_again() -> None:
    limit = TokenBuckets(per_second=1.0, burst=1)
    limit.take("a", NOW)
    assert [limit.take("a", NOW) for _ in range(5)] == [1.0] * 5


def test_asking_how_long_takes_nothing() -> None:
    limit = TokenBuckets(per_second=1.0, burst=1)
    assert [limit.wait("a", NOW) for _ in range(3)] == [0, 0, 0]
    assert limit.take("a", NOW) == 0


def test_a_clock_that_is_set_back_neither_fills_nor_empties() -> None:
    limit = TokenBuckets(per_second=1.0, burst=2)
    limit.take("a", NOW)
    assert limit.take("a", at(-3600)) == 0
    assert limit.take("a", at(-3600)) > 0


def test_very_many_clients_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MAX_KEYS", 10)
    limit = TokenBuckets(per_second=1.0, burst=1)
    for number in range(100):
        limit.take(str(number), NOW)
    assert len(limit._buckets) == 10


@every_case(
    ("address", "key"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("", ""),
        (None, ""),
        ("unix", "unix"),
    ],
)
def test_a_network_of_ipv6_is_one_client(address: str | None, key: str) -> None:
    assert client_key(address) == key
