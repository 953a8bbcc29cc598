"""The identity, state and scope of what every sender tells, by its documented payloads."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest

from core.incidents.folding import fold, open_from
from core.model.alert import AlertStatus
from core.model.conversation import Place, Platform
from core.model.incident import Incident, IncidentState
from handlers.incidents.open_incident import open_incident
from tests.cases import every_case
from tests.contract.sender_payloads import (
    NOW,
    OPSGENIE,
    PARSERS,
    SENDERS,
    STATES,
    Sender,
    by_budget,
    by_dimension,
    by_labels,
    service_health,
)
from tests.fakes.monitoring_systems.azure_monitor import AzureMonitor
from tests.fakes.monitoring_systems.system import Payload, encoded
from tests.fakes.store import InMemoryStore


class World:
    """The incidents that a sender's webhooks make."""

    def __init__(self, sender: Sender) -> None:
        self._store = InMemoryStore()
        self._sender = sender
        self._seconds = itertools.count()
        self._numbers = itertools.count(1)

    async def tell(self, number: int, *, over: bool = False) -> None:
        at = NOW + timedelta(seconds=next(self._seconds))
        delivery = PARSERS[self._sender.source](encoded(self._sender.tell(number, over)), at)
        assert delivery is not None
        await open_incident(
            delivery,
            store=self._store,
            places_for=lambda _: (Place(Platform.CONSOLE, "incidents"),),
            new_id=lambda: f"i{next(self._numbers)}",
        )

    @property
    def incidents(self) -> list[Incident]:
        return list(self._store.incidents.by_id.values())

    @property
    def firing(self) -> int:
        return sum(incident.firing_count for incident in self.incidents)


@pytest.fixture(params=SENDERS, ids=lambda sender: sender.name)
def sender(request: pytest.FixtureRequest) -> Sender:
    return request.param


async def test_the_same_thing_told_twice_is_one_alert(sender: Sender) -> None:
    world = World(sender)
    await world.tell(1)
    await world.tell(1)
    assert (len(world.incidents), world.firing, world.incidents[0].alert_count) == (1, 1, 1)


async def test_two_things_are_two_alerts(sender: Sender) -> None:
    world = World(sender)
    await world.tell(1)
    await world.tell(2)
    assert (len(world.incidents), world.firing) == (1 if sender.one_incident else 2, 2)


async def test_the_end_of_one_thing_leaves_the_other_and_the_end_of_both_resolves_all(sender: Sender) -> None:
    world = World(sender)
    await world.tell(1)
    await world.tell(2)
    await world.tell(1, over=True)
    assert world.firing == 1
    assert any(incident.state is IncidentState.OPEN for incident in world.incidents)
    await world.tell(2, over=True)
    assert {incident.state for incident in world.incidents} == {IncidentState.RESOLVED}


async def test_the_end_of_an_unknown_thing_opens_nothing(sender: Sender) -> None:
    world = World(sender)
    await world.tell(1, over=True)
    assert world.incidents == []


async def test_two_budgets_are_two_incidents() -> None:
    world = World(Sender("budget", by_budget, "azure_monitor", False))
    await world.tell(1)
    await world.tell(2)
    assert sorted(incident.title for incident in world.incidents) == ["till 1", "till 2"]


async def test_two_rules_that_tell_of_one_event_of_service_health_make_one_incident() -> None:
    def tell(number: int, over: bool) -> Payload:
        payload = service_health(1, over)
        payload["data"]["essentials"]["alertRule"] = f"rule {number}"
        return payload

    world = World(Sender("service health", tell, "azure_monitor", True))
    await world.tell(1)
    await world.tell(2)
    assert (len(world.incidents), world.firing) == (1, 1)


# --- states ----------------------------------------------------------------------------------------------------------


def test_a_documented_state_is_taken_as_what_it_means() -> None:
    taken: dict[str, AlertStatus | None] = {}
    for name, (source, payload, _) in STATES.items():
        delivery = PARSERS[source](encoded(payload), NOW)
        taken[name] = delivery.alerts[0].status if delivery is not None else None
    assert taken == {name: status for name, (_, _, status) in STATES.items()}


def test_an_event_that_lacks_what_an_earlier_one_said_erases_nothing() -> None:
    """Opsgenie sends descriptions only when an alert is created."""
    first = PARSERS["opsgenie"](encoded(OPSGENIE.fire()), NOW)
    later = PARSERS["opsgenie"](encoded(OPSGENIE.event("AddNote", description=None, details=None)), NOW)
    assert first is not None
    assert later is not None
    opened = open_from(first, "i1", Place(Platform.CONSOLE, "incidents"))
    (alert,) = fold(opened, later).alerts
    assert (alert.description, alert.runbook_url) == (first.alerts[0].description, first.alerts[0].runbook_url)


# --- scope -----------------------------------------------------------------------------------------------------------


def test_an_event_of_service_health_has_its_own_title_service_and_severity() -> None:
    delivery = PARSERS["azure_monitor"](encoded(service_health(1, over=False)), NOW)
    assert delivery is not None
    (alert,) = delivery.alerts
    assert (alert.name, alert.service, str(alert.severity)) == ("Delays in queues 1", "Service Bus", "warning")
    assert alert.labels["trackingId"] == "QW1X-1"
    assert "Messages  wait  & arrive late." in alert.description


def test_an_alert_of_azure_names_its_dimensions_its_value_and_its_runbook() -> None:
    payload = by_dimension(3, over=False)
    payload["data"]["alertContext"]["condition"]["allOf"][0] |= {"operator": "GreaterThan", "threshold": "2"}
    payload["data"]["alertContext"]["properties"] = {"runbook": "https://handbook.example/tills", "rows": [1, 2]}
    payload["data"]["customProperties"] = None
    delivery = PARSERS["azure_monitor"](encoded(payload), NOW)
    assert delivery is not None
    (alert,) = delivery.alerts
    assert alert.labels["till"] == "3"
    assert alert.description.endswith("p99 is 4 (GreaterThan 2). till: 3.")
    assert alert.runbook_url == "https://handbook.example/tills"


def test_a_rule_of_prometheus_in_azure_gives_its_labels_sentence_and_runbook() -> None:
    payload = by_labels(3, over=False)
    payload["data"]["essentials"]["description"] = ""
    payload["data"]["alertContext"]["annotations"] = {
        "summary": "Slow.",
        "runbook_url": "https://handbook.example/slow",
    }
    payload["data"]["customProperties"] = None
    delivery = PARSERS["azure_monitor"](encoded(payload), NOW)
    assert delivery is not None
    (alert,) = delivery.alerts
    assert (alert.labels["till"], alert.labels["zone"]) == ("3", "b")
    assert (alert.description.split()[0], alert.runbook_url) == ("Slow.", "https://handbook.example/slow")


@pytest.mark.parametrize(
    "rule", ["test-alertRule", "test-metricAlertRule", "test-logAlertRule-v1-numResults", "test-dynamicMetricAlertRule"]
)
def test_a_sample_of_azures_action_groups_is_no_alert(rule: str) -> None:
    assert PARSERS["azure_monitor"](encoded(AzureMonitor().alert("Fired", "Sev4", alertRule=rule)), NOW) is None


@every_case(
    ("level", "severity"), [(2, "critical"), (3, "warning"), (4, "info"), ("Informational", "info"), (None, "info")]
)
def test_the_level_of_an_event_of_azure_is_its_severity_as_a_number_or_a_word(level: object, severity: str) -> None:
    payload = service_health(1, over=False)
    payload["data"]["alertContext"]["level"] = level
    delivery = PARSERS["azure_monitor"](encoded(payload), NOW)
    assert delivery is not None
    assert str(delivery.alerts[0].severity) == severity
    assert "as sent" not in delivery.alerts[0].description
