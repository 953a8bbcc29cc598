from __future__ import annotations

from datetime import UTC, datetime

import pytest

from core.model.alert import Alert, AlertDelivery, AlertStatus, Severity
from core.model.conversation import Channel, Place, Platform
from core.model.errors import ConfigurationError
from core.model.silences import incident_place, incident_places, routing_facts
from core.model.team import Route, Team

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
CHANNELS = (
    Channel("incidents", {Platform.SLACK: "C0INC", Platform.CONSOLE: "incidents"}),
    Channel("payments", {Platform.CONSOLE: "payments"}),
)
TO_PAYMENTS = Route(("payments",), (("service", frozenset({"till"})), ("severity", frozenset({"critical", "page"}))))
TO_ALL = Route(("incidents",))
BOTH = (Platform.SLACK, Platform.CONSOLE)


def facts(**labels: str) -> dict[str, frozenset[str]]:
    return {name: frozenset({value}) for name, value in labels.items()}


def test_the_first_route_whose_labels_all_match_is_taken() -> None:
    known = facts(service="till", severity="critical", pod="till-7")
    assert incident_place(known, (TO_PAYMENTS, TO_ALL), CHANNELS, BOTH) == Place(Platform.CONSOLE, "payments")


@pytest.mark.parametrize("labels", [{}, {"service": "till"}, {"service": "till", "severity": "warning"}])
def test_a_route_that_matches_in_part_is_passed_over(labels: dict[str, str]) -> None:
    assert incident_place(facts(**labels), (TO_PAYMENTS, TO_ALL), CHANNELS, BOTH) == Place(Platform.SLACK, "C0INC")


def test_the_first_platform_that_has_the_channel_is_taken() -> None:
    place = incident_place({}, (TO_ALL,), CHANNELS, (Platform.TEAMS, Platform.CONSOLE, Platform.SLACK))
    assert place == Place(Platform.CONSOLE, "incidents")


def test_a_route_with_several_channels_takes_the_first_that_is_there() -> None:
    route = Route(("nowhere", "payments", "incidents"))
    assert incident_place({}, (route,), CHANNELS, BOTH) == Place(Platform.SLACK, "C0INC")
    assert incident_place({}, (route,), CHANNELS, (Platform.CONSOLE,)) == Place(Platform.CONSOLE, "payments")


def test_a_matching_route_that_leads_nowhere_gives_way_to_the_next() -> None:
    known = facts(service="till", severity="critical")
    assert incident_place(known, (TO_PAYMENTS, TO_ALL), CHANNELS, (Platform.SLACK,)) == Place(Platform.SLACK, "C0INC")


def test_labels_that_lead_nowhere_are_a_mistake_in_the_configuration() -> None:
    with pytest.raises(ConfigurationError, match=r"'service': 'shelf'.* on slack: add a route without `match`"):
        incident_place(facts(service="shelf"), (TO_PAYMENTS,), CHANNELS, (Platform.SLACK,))


def test_an_incident_is_posted_to_a_second_channel_on_every_platform_and_nowhere_twice() -> None:
    route = Route(("payments",), also=("incidents", "payments", "nowhere"))
    assert incident_places({}, (route, TO_ALL), CHANNELS, BOTH) == (
        Place(Platform.CONSOLE, "payments"),
        Place(Platform.SLACK, "C0INC"),
        Place(Platform.CONSOLE, "incidents"),
    )
    assert incident_places({}, (TO_ALL,), CHANNELS, BOTH) == (Place(Platform.SLACK, "C0INC"),)


def delivery(*alerts: Alert) -> AlertDelivery:
    return AlertDelivery("key", "sentry", "group", alerts, NOW)


def test_a_route_may_ask_for_a_label_and_for_what_it_means() -> None:
    alert = Alert(
        "a", "A", AlertStatus.FIRING, Severity.CRITICAL, NOW, "till", labels={"severity": "page", "zone": "b"}
    )
    known = routing_facts(
        delivery(alert), [Team("payments", "Payments", services=frozenset({"till"})), Team("web", "Web")]
    )
    assert known == {
        "severity": {"page", "critical"},
        "zone": {"b"},
        "source": {"sentry"},
        "service": {"till"},
        "team": {"payments"},
    }


def test_an_incident_is_routed_by_the_first_of_its_alerts_that_fires() -> None:
    over = Alert("a", "A", AlertStatus.RESOLVED, Severity.INFO, NOW, "shelf")
    fires = Alert("b", "B", AlertStatus.FIRING, Severity.INFO, NOW, "till")
    assert routing_facts(delivery(over, fires), ())["service"] == {"till"}
