from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.incidents.folding import fold, open_from
from core.model.alert import MAX_KEPT_ALERTS, Alert, AlertDelivery, AlertStatus, Severity
from core.model.conversation import Place, Platform
from core.model.findings import change_name
from core.model.incident import Incident, IncidentState

START = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
PLACE = Place(Platform.CONSOLE, "incidents")
MANY = MAX_KEPT_ALERTS + 10

_requests = count(1)


def firing(name: str = "a", minute: float = 0, severity: Severity = Severity.WARNING) -> Alert:
    return Alert(
        fingerprint=name,
        name=f"{name} is broken",
        status=AlertStatus.FIRING,
        severity=severity,
        starts_at=START + timedelta(minutes=minute),
        service=f"{name}-service",
        labels={"name": name},
    )


def resolved(name: str = "a", minute: float = 0, severity: Severity = Severity.WARNING) -> Alert:
    return replace(firing(name, minute, severity), status=AlertStatus.RESOLVED)


def delivered(*alerts: Alert, omitted: int = 0) -> AlertDelivery:
    number = next(_requests)
    return AlertDelivery(f"key {number}", "test", "group", alerts, START + timedelta(hours=1, seconds=number), omitted)


def opened(*alerts: Alert, omitted: int = 0) -> Incident:
    return open_from(delivered(*alerts, omitted=omitted), "i1", PLACE)


def folded(incident: Incident, *alerts: Alert, omitted: int = 0) -> Incident:
    return fold(incident, delivered(*alerts, omitted=omitted))


def many(alert: type[Alert] | object = firing) -> list[Alert]:
    """More alerts than are kept, by name in the order in which they began."""
    return [alert(f"m{number:03}", number) for number in range(MANY)]  # pyright: ignore[reportCallIssue]


# --- opening ---------------------------------------------------------------------------------------------------------


def test_an_incident_is_opened_as_its_first_alert() -> None:
    incident = opened(firing("later", 2), firing("first", 1, Severity.CRITICAL))
    assert (incident.title, incident.service, incident.labels) == (
        "first is broken",
        "first-service",
        {"name": "first"},
    )
    assert incident.started_at == START + timedelta(minutes=1)
    assert (incident.state, incident.revision) == (IncidentState.OPEN, 1)
    assert (incident.alert_count, incident.firing_count, incident.delivery_count) == (2, 2, 1)


def test_an_incident_is_not_named_after_an_alert_that_is_over() -> None:
    incident = opened(resolved("over", 0), firing("still", 1))
    assert (incident.title, incident.service) == ("still is broken", "still-service")
    assert (incident.alert_count, incident.firing_count) == (2, 1)


def test_the_summary_is_a_better_title_than_the_name() -> None:
    assert opened(replace(firing(), summary="The till is slow")).title == "The till is slow"


# --- folding ---------------------------------------------------------------------------------------------------------


def test_a_new_alert_is_counted_and_a_known_one_is_not() -> None:
    incident = folded(opened(firing("a")), firing("a"), firing("b"))
    assert (incident.alert_count, incident.firing_count, incident.delivery_count) == (2, 2, 2)


def test_every_delivery_makes_one_revision() -> None:
    incident = folded(folded(opened(firing()), firing("b")), firing("c"))
    assert incident.revision == 3


def test_an_alert_that_is_named_twice_in_one_delivery_is_one_alert() -> None:
    assert opened(firing("a"), firing("a")).alert_count == 1


def test_the_severity_is_the_worst_that_there_was() -> None:
    incident = opened(firing("a", severity=Severity.INFO))
    incident = folded(incident, firing("b", severity=Severity.CRITICAL))
    incident = folded(incident, resolved("b", severity=Severity.CRITICAL), firing("c", severity=Severity.WARNING))
    assert incident.severity is Severity.CRITICAL


def test_an_alert_that_began_earlier_moves_the_start_back() -> None:
    assert folded(opened(firing("a", 5)), firing("b", 3)).started_at == START + timedelta(minutes=3)


def test_an_incident_is_resolved_when_none_of_its_alerts_fires() -> None:
    incident = opened(firing("a"), firing("b"))
    incident = folded(incident, resolved("a"))
    assert (incident.state, incident.resolved_at) == (IncidentState.OPEN, None)
    last = delivered(resolved("b"))
    incident = fold(incident, last)
    assert (incident.state, incident.resolved_at) == (IncidentState.RESOLVED, last.received_at)
    assert (incident.alert_count, incident.firing_count) == (2, 0)


def test_an_alert_that_fires_again_keeps_the_incident_open() -> None:
    incident = folded(opened(firing("a"), firing("b")), resolved("a"))
    incident = folded(incident, firing("a", 10))
    incident = folded(incident, resolved("b"))
    assert (incident.state, incident.firing_count, incident.alert_count) == (IncidentState.OPEN, 1, 2)


def test_a_resolved_alert_that_nobody_knew_is_counted_and_changes_no_state() -> None:
    incident = folded(opened(firing("a")), resolved("b"))
    assert (incident.state, incident.alert_count, incident.firing_count) == (IncidentState.OPEN, 2, 1)


# --- more than are kept ----------------------------------------------------------------------------------------------


def test_only_so_many_alerts_are_kept_and_all_are_counted() -> None:
    incident = opened(*many())
    assert len(incident.alerts) == MAX_KEPT_ALERTS
    assert (incident.alert_count, incident.firing_count) == (MANY, MANY)


def test_alerts_that_come_one_by_one_are_all_counted() -> None:
    first, *others = many()
    incident = opened(first)
    for alert in others:
        incident = folded(incident, alert)
    assert (incident.alert_count, incident.firing_count) == (MANY, MANY)
    assert folded(incident, *others).alert_count == MANY


def test_settled_alerts_give_way_to_firing_ones() -> None:
    incident = opened(*(resolved(f"r{number}") for number in range(MAX_KEPT_ALERTS)), firing("late", 99))
    assert incident.alerts[0].fingerprint == "late"
    assert len(incident.alerts) == MAX_KEPT_ALERTS


def test_the_kept_alerts_resolving_do_not_resolve_what_fires_beside_them() -> None:
    incident = opened(*many())
    kept = [alert.fingerprint for alert in incident.alerts]
    incident = folded(incident, *(resolved(name) for name in kept))
    assert (incident.state, incident.firing_count) == (IncidentState.OPEN, MANY - MAX_KEPT_ALERTS)


@pytest.mark.parametrize("backwards", [False, True])
def test_the_last_of_many_alerts_resolves_the_incident(backwards: bool) -> None:
    incident = opened(*many())
    *others, last = sorted(many(resolved), key=lambda alert: alert.fingerprint, reverse=backwards)
    for alert in others:
        incident = folded(incident, alert)
    assert (incident.state, incident.firing_count) == (IncidentState.OPEN, 1)
    assert folded(incident, last).state is IncidentState.RESOLVED


def test_alerts_that_a_delivery_only_counts_are_counted_once() -> None:
    incident = opened(firing("a"), omitted=199)
    assert incident.alert_count == 200
    assert folded(incident, firing("a"), omitted=199).alert_count == 200
    incident = folded(incident, *(firing(f"b{number}") for number in range(40)), omitted=160)
    assert incident.alert_count == 200, "the forty may be among those that were only counted"
    incident = folded(incident, *(firing(f"c{number}") for number in range(160)))
    assert incident.alert_count == 201


names = st.integers(0, MANY).map(lambda number: f"n{number:03}")
changes = st.lists(st.lists(st.tuples(names, st.booleans()), min_size=1, max_size=MANY), max_size=12)


@given(changes)
def test_an_incident_is_open_exactly_while_an_alert_of_it_fires(deliveries: list[list[tuple[str, bool]]]) -> None:
    incident = opened(firing("n000"))
    truth = {"n000": True}
    for delivery in deliveries:
        last = dict(delivery)
        incident = folded(incident, *((firing if fires else resolved)(name) for name, fires in last.items()))
        truth |= last
        assert incident.firing_count == sum(truth.values())
        assert incident.state is (IncidentState.OPEN if any(truth.values()) else IncidentState.RESOLVED)
        assert len(incident.alerts) <= MAX_KEPT_ALERTS
        assert incident.alert_count >= len(truth)
        kept = {alert.fingerprint for alert in incident.alerts if alert.status is AlertStatus.FIRING}
        assert kept | set(incident.also_firing) == {name for name, fires in truth.items() if fires}
        assert list(incident.also_firing) == sorted(set(incident.also_firing) - kept)


def test_the_description_says_each_thing_once() -> None:
    alert = replace(firing(), summary="The till is slow", description="Charges wait.")
    incident = opened(alert, replace(alert, fingerprint="b", description="Refunds wait."))
    assert incident.description == "The till is slow\nCharges wait.\nRefunds wait."


@pytest.mark.parametrize(
    ("kind", "change_id", "name"),
    [
        ("commit", "4f2a9c1", "commit 4f2a9c1"),
        ("config", "config-4711", "config-4711"),
        ("deployment", "Deployment 17", "Deployment 17"),
        ("config", "CHG-4711", "config CHG-4711"),
    ],
)
def test_id_that_begins_with_kind_names_change_alone(kind: str, change_id: str, name: str) -> None:
    assert change_name(kind, change_id) == name
