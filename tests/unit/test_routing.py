from __future__ import annotations

import pytest

from core.conversation import Channel, Place, Platform
from core.errors import ConfigurationError
from core.routing import incident_place
from core.team import Route

CHANNELS = (
    Channel("incidents", {Platform.SLACK: "C0INC", Platform.CONSOLE: "incidents"}),
    Channel("payments", {Platform.CONSOLE: "payments"}),
)
TO_PAYMENTS = Route(("payments",), (("service", "till"), ("severity", "critical")))
TO_ALL = Route(("incidents",))
BOTH = (Platform.SLACK, Platform.CONSOLE)


def test_the_first_route_whose_labels_all_match_is_taken() -> None:
    labels = {"service": "till", "severity": "critical", "pod": "till-7"}
    assert incident_place(labels, (TO_PAYMENTS, TO_ALL), CHANNELS, BOTH) == Place(Platform.CONSOLE, "payments")


@pytest.mark.parametrize("labels", [{}, {"service": "till"}, {"service": "till", "severity": "warning"}])
def test_a_route_that_matches_in_part_is_passed_over(labels: dict[str, str]) -> None:
    assert incident_place(labels, (TO_PAYMENTS, TO_ALL), CHANNELS, BOTH) == Place(Platform.SLACK, "C0INC")


def test_the_first_platform_that_has_the_channel_is_taken() -> None:
    place = incident_place({}, (TO_ALL,), CHANNELS, (Platform.TEAMS, Platform.CONSOLE, Platform.SLACK))
    assert place == Place(Platform.CONSOLE, "incidents")


def test_a_route_with_several_channels_takes_the_first_that_is_there() -> None:
    route = Route(("nowhere", "payments", "incidents"))
    assert incident_place({}, (route,), CHANNELS, BOTH) == Place(Platform.SLACK, "C0INC")
    assert incident_place({}, (route,), CHANNELS, (Platform.CONSOLE,)) == Place(Platform.CONSOLE, "payments")


def test_a_matching_route_that_leads_nowhere_gives_way_to_the_next() -> None:
    labels = {"service": "till", "severity": "critical"}
    assert incident_place(labels, (TO_PAYMENTS, TO_ALL), CHANNELS, (Platform.SLACK,)) == Place(Platform.SLACK, "C0INC")


def test_labels_that_lead_nowhere_are_a_mistake_in_the_configuration() -> None:
    with pytest.raises(ConfigurationError, match=r"'service': 'shelf'.* on slack: add a route without `match`"):
        incident_place({"service": "shelf"}, (TO_PAYMENTS,), CHANNELS, (Platform.SLACK,))
