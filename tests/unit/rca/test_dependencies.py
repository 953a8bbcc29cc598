from __future__ import annotations

from core.rca.dependencies import callees, callers, neighbourhood, service_of
from tests.fakes.outage import CALLS, incident


def test_callees_are_found_through_others_with_their_distance() -> None:
    assert callees("shop", CALLS) == {"cart": 1, "login": 1, "stock": 2, "vault": 2}


def test_a_circle_of_calls_ends() -> None:
    assert callees("a", {"a": ("b",), "b": ("a", "a", "c"), "c": ("b",)}) == {"b": 1, "c": 2}


def test_services_far_away_are_left_out() -> None:
    chain = {f"s{number}": (f"s{number + 1}",) for number in range(9)}
    assert callees("s0", chain) == {"s1": 1, "s2": 2, "s3": 3}


def test_callers_are_the_direct_ones() -> None:
    assert callers("stock", CALLS) == ["cart"]


def test_the_neighbourhood_is_read_from_near_to_far_and_bounded() -> None:
    assert neighbourhood("shop", CALLS, 16) == ["shop", "cart", "login", "stock", "vault", "edge"]
    assert neighbourhood("shop", CALLS, 3) == ["shop", "cart", "login"]
    assert neighbourhood("unknown", CALLS, 3) == ["unknown"]


def test_the_service_is_taken_from_the_alert_and_else_from_its_words() -> None:
    assert service_of(incident(service="anything"), CALLS) == "anything"
    assert service_of(incident(service="", title="is (stock) slow?"), CALLS) == "stock"
    assert service_of(incident(service="", title="nothing known"), CALLS) == ""
