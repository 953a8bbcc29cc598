"""An alert that explains itself is taken at its word."""

from __future__ import annotations

from core.model.incident import Incident
from core.rca.explain import explain
from tests.cases import every_case
from tests.fakes.outage import change, errors, gauge, incident, observations, traffic


def alerted(text: str) -> Incident:
    return incident(title=f"Shop alert\n{text}")


@every_case(
    "text",
    [
        "The TLS certificate of shop.example expired at 09:00 UTC.",
        "The monthly quota of map tiles is exceeded.",
        "Volume data-2 is full.",
        "Pod shop-7 is unschedulable: 0/5 nodes are available.",
        "The API key for parcels has expired.",
    ],
)
def test_an_alert_that_explains_itself_is_the_cause(text: str) -> None:
    failing = gauge("shop", "error_ratio", lambda offset: 0 if offset < -5 else 30)
    found, evaluation = explain(
        observations([traffic("shop")], [failing], [change("C-1", "shop", -40, "New texts")], of=alerted(text))
    )
    assert found.cause is not None
    assert found.cause.change is None
    assert found.cause.cause == f"The alert states it: {text}"
    assert found.cause.evidence[0].quote == text
    assert text.rstrip(".") not in found.cause.next_check
    assert evaluation is not None


@every_case(
    "text", ["Quota of the pool is used up", "The licence of the map server has ended.", "Volume data-2 is full."]
)
def test_what_an_alert_without_a_service_states_is_told_in_whole_sentences(text: str) -> None:
    found, _ = explain(observations(of=incident(service="", title=text)))
    assert found.cause is not None
    assert found.cause.disproof == "The same signs in what is affected on a day without an incident."
    assert " what is affected" in found.cause.next_check
    assert text.rstrip(".") not in found.cause.next_check


@every_case(
    "text",
    [
        "The certificate of shop.example expires in 30 days.",
        "Error rate of shop is above its objective.",
        "The quota page is slow.",
        "Disk latency of shop is high.",
        "Expired sessions are cleaned.",
    ],
)
def test_an_alert_about_a_symptom_is_no_cause(text: str) -> None:
    found, _ = explain(observations([traffic("shop")], of=alerted(text)))
    assert found.cause is None


def test_a_failing_provider_without_a_host_is_named_by_what_is_logged() -> None:
    seen = observations([traffic("shop"), errors("shop", "licence of the seat renderer: plan quota exceeded", -6)])
    found, _ = explain(seen)
    assert found.cause is not None
    assert found.cause.cause.startswith("something outside, on which shop depends, is failing")
    assert "“licence of the seat renderer: plan quota exceeded request=0”" in found.cause.cause
