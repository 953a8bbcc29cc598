"""Everything that an alert says decides about it before anything is cut, and what is cut is counted and named."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from bot.web.webhook_sources import webhook_parsers
from core.incidents.folding import open_from
from core.model.alert import MAX_KEPT_ALERTS, Alert, Severity
from core.model.conversation import Place, Platform
from tests.cases import every_case
from tests.fakes.monitoring_systems.alertmanager import Alertmanager
from tests.fakes.monitoring_systems.azure_monitor import AzureMonitor
from tests.fakes.monitoring_systems.datadog import Datadog
from tests.fakes.monitoring_systems.grafana import Grafana
from tests.fakes.monitoring_systems.incident_io import IncidentIoAlert
from tests.fakes.monitoring_systems.opsgenie import Opsgenie
from tests.fakes.monitoring_systems.sentry import Sentry
from tests.fakes.monitoring_systems.system import TITLE, Payload, encoded

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
BEGAN = NOW - timedelta(minutes=4)
PARSERS = webhook_parsers({})
MAX_LENGTH = 20_000  # characters of an alert's labels
LEFT_OUT = re.compile(r"[\d,]+ labels not kept: a\d{4}, .*a\d{4} and [\d,]+ more\.\Z")
DECIDING = {"service": "till", "severity": "critical", "cluster": "north", "namespace": "shop"}


def grafana(labels: Mapping[str, str]) -> Payload:
    return Grafana("1", BEGAN).group("firing", {"alertname": "LatencyHigh", **labels})


def alertmanager(labels: Mapping[str, str]) -> Payload:
    return Alertmanager("1", BEGAN).group("firing", {"alertname": "LatencyHigh", **labels})


def datadog(labels: Mapping[str, str]) -> Payload:
    tags = ",".join(f"{name}:{value}" for name, value in labels.items())
    return Datadog("1", BEGAN).event("Triggered", tags=tags, alert_priority="P1")


def opsgenie(labels: Mapping[str, str]) -> Payload:
    return Opsgenie("1", BEGAN).event("Create", details=labels, tags=[], priority="P1")


def azure_monitor(labels: Mapping[str, str]) -> Payload:
    payload = AzureMonitor("1", BEGAN).alert("Fired", "Sev0")
    payload["data"]["customProperties"] = dict(labels)
    return payload


def sentry(labels: Mapping[str, str]) -> Payload:
    payload = Sentry("1", BEGAN).update()
    payload["data"]["event"]["tags"] = [list(pair) for pair in labels.items()]
    return payload


def incident_io(labels: Mapping[str, str]) -> Payload:
    payload = IncidentIoAlert("1", BEGAN).fire()
    payload["public_alert.alert_created_v1"]["attributes"] = [
        {"attribute": {"id": "01GW", "name": name}, "value": {"literal": value}} for name, value in labels.items()
    ]
    return payload


SENDERS = [grafana, alertmanager, datadog, opsgenie, azure_monitor, sentry, incident_io]


def alert_of(sender: Callable[[Mapping[str, str]], Payload], labels: Mapping[str, str]) -> Alert:
    delivery = PARSERS[sender.__name__](encoded(sender(labels)), NOW)
    assert delivery is not None
    return delivery.alerts[0]


@every_case("sender", SENDERS)
def test_any_number_of_labels_changes_neither_service_nor_severity_nor_name(
    sender: Callable[[Mapping[str, str]], Payload],
) -> None:
    few = alert_of(sender, DECIDING)
    assert (few.service, few.severity) == ("till", Severity.CRITICAL)
    assert "not kept" not in few.description
    for count, is_cut in ((70, False), (4_000, True)):
        alert = alert_of(sender, {f"a{number:04}": f"value {number}" for number in range(count)} | DECIDING)
        assert (alert.service, alert.severity, alert.name) == (few.service, few.severity, few.name)
        assert DECIDING.items() <= alert.labels.items() or sender is azure_monitor
        assert sum(len(name) + len(value) for name, value in alert.labels.items()) <= MAX_LENGTH
        assert bool(LEFT_OUT.search(alert.description)) is is_cut


def test_a_long_description_leaves_room_for_what_was_not_kept() -> None:
    payload = grafana(DECIDING | {f"a{number:04}": "x" * 400 for number in range(90)})
    payload["alerts"][0]["annotations"] = {"summary": TITLE, "description": "x" * 9_000}
    delivery = PARSERS["grafana"](encoded(payload), NOW)
    assert delivery is not None
    (alert,) = delivery.alerts
    assert len(alert.description) == 4_000
    assert LEFT_OUT.search(alert.description)


def test_long_values_decide_before_they_are_cut() -> None:
    pod = f"till-{'x' * 600}-5d4f8c7b9d-abcde"
    (alert,) = (alert_of(grafana, {"pod": pod}),)
    assert alert.service.startswith("till-xxx")
    assert len(alert.service) == 512
    assert len(alert.summary) <= 500


def test_of_a_large_group_the_worst_alerts_are_kept_and_the_earliest_begins_it() -> None:
    payload = grafana({"severity": "warning"})
    first = payload["alerts"][0]
    payload["alerts"] = [
        first
        | {"fingerprint": f"f{number}", "startsAt": (BEGAN + timedelta(seconds=number)).isoformat()}
        | {"labels": {"alertname": f"A{number}", "severity": "critical" if number == 70 else "warning"}}
        for number in range(80)
    ]
    delivery = PARSERS["grafana"](encoded(payload), NOW)
    assert delivery is not None
    incident = open_from(delivery, "i1", Place(Platform.CONSOLE, "incidents"))
    assert (incident.severity, incident.started_at) == (Severity.CRITICAL, BEGAN)
    assert (len(delivery.alerts), incident.alert_count) == (MAX_KEPT_ALERTS, 80)
