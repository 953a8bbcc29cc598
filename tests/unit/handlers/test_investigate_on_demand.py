from dataclasses import replace
from datetime import UTC, datetime

from core.conversation import Audience, Person, Place, Platform, Question
from core.incident import Stage
from handlers.investigate_on_demand import incident_from

QUESTION = Question(
    id="slack:C1:17.5",
    text="PaymentGatewayLatencyHigh\np99 of payment-gateway is 4 s since 10:02",
    asker=Person(Platform.SLACK, "U1"),
    place=Place(Platform.SLACK, "C1", "17.5"),
    audience=Audience(),
    asked_at=datetime(2026, 3, 19, 10, 5, tzinfo=UTC),
)


def test_a_pasted_alert_is_an_incident_named_by_its_first_line():
    incident = incident_from(QUESTION, ["booking-api", "payment", "payment-gateway"])
    assert incident.title == "PaymentGatewayLatencyHigh"
    assert incident.service == "payment-gateway"
    assert "p99 of payment-gateway is 4 s" in incident.description
    assert (incident.id, incident.place, incident.stage) == (QUESTION.id, QUESTION.place, Stage.TRIAGING)


def test_a_pasted_essay_has_a_short_title_and_loses_nothing():
    incident = incident_from(replace(QUESTION, text="slow " * 1000), ["booking-api"])
    assert len(incident.title) <= 150
    assert not incident.service
    assert incident.description.count("slow") >= 1000
