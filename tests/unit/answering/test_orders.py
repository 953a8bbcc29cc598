"""An order to act is told from a question, a report and a heading."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.answering.questions import Order, order_in
from core.model.answer import Excerpt
from tests.cases import every_case
from tests.samples import excerpt_answer

SERVICES = ("payment-gateway", "booking-api")
GATEWAY = "roll back payment-gateway"


@every_case(
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


@every_case(
    "text",
    [
        "how do I restart a service?",
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


@pytest.mark.parametrize(
    "text", ["how do I restart payment-gateway?", "how to restart booking-api", "How can we restart booking-api"]
)
def test_a_question_of_how_to_do_something_with_a_service_is_no_order_but_names_the_action(text: str) -> None:
    order = order_in(text, SERVICES)
    assert order is not None
    assert (order.verb, order.is_question) == ("restart", True)


def test_it_is_asked_for_the_thing_and_for_any_of_its_kind() -> None:
    for text, general in (
        ("restart payment-gateway", "how do I restart?"),
        ("drain the node n-17", "how do I drain the node?"),
        ("purge the cache", "how do I purge the cache?"),
    ):
        order = order_in(text, SERVICES)
        assert order is not None
        assert order.questions == (f"how do I {text}?", general)


@every_case(
    ("order", "title", "text", "explains"),
    [
        (GATEWAY, "Slip", "```\nslip rollback NAME\n```", 2),
        (GATEWAY, "Slip", "```\nslip rollback payment-gateway\n```", 2),
        (GATEWAY, "Slip", "```\nslip rollback booking-api\n```", 2),  # another of its kind
        (GATEWAY, "Slip", "```\nkubectl roll back deploy/slip-scheduler\n```", 0),
        (GATEWAY, "How to roll back", "Ask the owner.", 1),
        (GATEWAY, "Slip", "## Rolling back\n\nAsk the owner of payment-gateway.", 1),
        (GATEWAY, "Slip", "## Rolling back\n\nAsk the owner of the ledger.", 0),
        (GATEWAY, "Slip", "Nobody may roll back payment-gateway on a Friday.", 0),
        ("roll back it", "Slip", "## How to roll back\n\nAsk the owner.", 1),
        ("roll back it", "Slip", "```\nslip rollback slip-scheduler\n```", 2),
    ],
)
def test_a_command_or_page_explains_an_action_unless_it_is_for_something_else(
    order: str, title: str, text: str, explains: int
) -> None:
    answer = excerpt_answer(excerpts=(Excerpt(text, text, 1),), further=())
    answer = replace(answer, citations=(replace(answer.citations[0], number=1, title=title, heading=""),))
    assert Order(order, "roll back", ("", ""), frozenset(SERVICES)).explained_by(answer) == explains
