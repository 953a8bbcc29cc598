"""An order to act is told from a question, a report and a heading."""

from __future__ import annotations

import pytest

from core.answering.questions import Order, order_in

SERVICES = ("payment-gateway", "booking-api")


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("restart payment-gateway please", "restart payment-gateway"),
        ("Please restart it!", "restart it"),
        ("can you roll back booking-api?", "roll back booking-api"),
        ("hey plumbline, scale booking-api to 10 replicas now", "scale booking-api to 10 replicas"),
        ("delete the log", "delete the log"),
        ("drain runner barge-07 asap", "drain runner barge-07"),
    ],
)
def test_an_order_is_what_is_to_be_done(text: str, order: str) -> None:
    assert getattr(order_in(text, SERVICES), "text", "") == order


@pytest.mark.parametrize(
    "text",
    [
        "how do I restart payment-gateway?",
        "can I restart payment-gateway?",
        "restart loops in the gateway",
        "deploy failed with exit code 3",
        "release notes of payment-gateway",
        "rollback of booking-api",
        "can you explain how to restart payment-gateway?",
        "restart the\nservice",
        "roll back",
        "",
    ],
)
def test_anything_else_is_no_order(text: str) -> None:
    assert order_in(text, SERVICES) is None


def test_it_is_asked_for_the_thing_and_for_any_of_its_kind() -> None:
    assert Order("restart payment-gateway", "restart").questions(SERVICES) == (
        "how do I restart payment-gateway?",
        "how do I restart?",
    )
    assert Order("drain node n-17", "drain").questions(SERVICES) == (
        "how do I drain node n-17?",
        "how do I drain node?",
    )
    assert Order("purge the cache", "purge").questions(SERVICES) == ("how do I purge the cache?",)
