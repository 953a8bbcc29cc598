from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from core.ports import Series
from core.rca.dependencies import metric_origins
from core.rca.signals import is_harm, is_rate
from tests.cases import every_case

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
TIMES = tuple(START + timedelta(minutes=minute) for minute in range(60))
SUSPECT = TIMES[50]
GRAPH = {"web": ("shop",), "shop": ("bank",)}


def rising(service: str, by: float, metric: str = "latency_seconds") -> Series:
    values = tuple(0.1 + 0.001 * (minute % 3) + (by if minute >= 55 else 0.0) for minute in range(60))
    return Series(service, metric, TIMES, values)


def test_the_trouble_arises_where_no_callee_lost_the_time() -> None:
    found = metric_origins([rising("web", 1.0), rising("shop", 1.0), rising("bank", 0.0)], GRAPH, "web", SUSPECT)
    assert found["shop"] > 0.9
    assert found["web"] < 0.1
    assert found["bank"] < 0.1


@every_case("metric", ["cpu_percent", "process_start_time_seconds", "gc_time"])
def test_a_metric_that_does_not_add_up_along_calls_says_nothing(metric: str) -> None:
    assert metric_origins([rising(each, 1.0, metric) for each in ("web", "shop", "bank")], GRAPH, "web", SUSPECT) == {}


@every_case("metric", ["cache_hits", "network_traffic_bytes", "request_body_bytes", "read_throughput"])
def test_what_else_measures_traffic_counts_no_requests(metric: str) -> None:
    lost = [rising("web", 1.0), rising("shop", 1.0), rising("bank", 0.0)]
    counts = [Series(each, "http_requests_total", TIMES, (100.0,) * 60) for each in ("web", "shop", "bank")]
    other = Series("shop", metric, TIMES, (5.0,) * 50 + (1.0,) * 10)
    found = metric_origins([*lost, *counts, other], GRAPH, "web", SUSPECT)
    assert found == metric_origins([*lost, *counts], GRAPH, "web", SUSPECT)


@every_case("metric", ["RequestCount", "http_requests_total", "requests_per_second", "istio_requests_total"])
def test_a_metric_of_requests_served_is_their_rate(metric: str) -> None:
    assert is_rate(metric)


@every_case(
    "metric",
    [
        "request_timeouts_total",
        "RequestTimeouts",
        "request_errored_total",
        "request_sizes",
        "request_latencyms",
        "http_5xx_requests",
        "http_requests_in_flight",
    ],
)
def test_a_metric_of_requests_that_fail_or_wait_is_no_rate(metric: str) -> None:
    assert not is_rate(metric)
    assert is_harm(metric)


def test_a_service_whose_callee_was_measured_at_other_times_is_left_out() -> None:
    late = tuple(at + timedelta(seconds=30) for at in TIMES)
    shop = Series("shop", "latency_seconds", late, rising("shop", 1.0).values)
    assert metric_origins([rising("web", 1.0), shop], GRAPH, "web", SUSPECT) == {}


def test_without_a_time_before_nothing_is_known() -> None:
    assert metric_origins([rising("web", 1.0)], GRAPH, "web", TIMES[0]) == {}


class CountedTimes(tuple[datetime, ...]):
    """Times that count how often they were compared with others."""

    __slots__ = ()

    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedTimes.compared += 1
        return super().__eq__(other)

    __hash__ = tuple.__hash__


def test_times_are_compared_only_among_series_of_one_name_and_counts_of_requests() -> None:
    CountedTimes.compared = 0
    named = [replace(rising("web", 1.0, f"latency_{n}_seconds"), times=CountedTimes(TIMES)) for n in range(40)]
    metric_origins(named, GRAPH, "web", SUSPECT)
    assert CountedTimes.compared <= len(named)
