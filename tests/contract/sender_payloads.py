"""The documented payloads of every sender: two things that fire and end, and every state."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from adapters.alerts.generic import GenericSection
from bot.web.webhook_sources import webhook_parsers
from core.model.alert import AlertStatus
from tests.fakes.monitoring_systems.alertmanager import Alertmanager
from tests.fakes.monitoring_systems.azure_monitor import AzureMonitor
from tests.fakes.monitoring_systems.datadog import Datadog
from tests.fakes.monitoring_systems.grafana import Grafana
from tests.fakes.monitoring_systems.home_made import GENERIC, HomeMade
from tests.fakes.monitoring_systems.incident_io import IncidentIo, IncidentIoAlert
from tests.fakes.monitoring_systems.opsgenie import JiraServiceManagement, Opsgenie
from tests.fakes.monitoring_systems.pagerduty import PagerDuty
from tests.fakes.monitoring_systems.sentry import Sentry, SentryMetric
from tests.fakes.monitoring_systems.servicenow import ServiceNow
from tests.fakes.monitoring_systems.system import MonitoringSystem, Payload

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
BEGAN = NOW - timedelta(minutes=4)
PARSERS = webhook_parsers({"generic": GenericSection.model_validate(GENERIC)})
FIRING, RESOLVED, UPDATED = AlertStatus
NO_ALERT = None
RECORDED = Path(__file__).parent / "recorded_alerts"
STORIES = {file.stem: yaml.safe_load(file.read_text("utf-8")) for file in sorted(RECORDED.iterdir())}
"""The documented bodies of each sender that a definition describes and no fake sends, with what they mean."""


@dataclass(frozen=True, slots=True)
class Sender:
    """Tells that thing `number` fires, or that it is over."""

    name: str
    tell: Callable[[int, bool], Payload]
    source: str
    one_incident: bool  # whether both things belong to one incident


def by_alert(system: Grafana) -> Callable[[int, bool], Payload]:
    def tell(number: int, over: bool) -> Payload:
        labels = {"alertname": "LatencyHigh", "service": "till", "till": str(number)}
        return system.group("resolved" if over else "firing", labels, fingerprint=f"f{number}")

    return tell


def by_scope(number: int, over: bool) -> Payload:
    system = Datadog("7", BEGAN)
    transition = "Recovered" if over else "Triggered"
    return system.event(transition, alert_scope=f"host:till-{number}", last_updated=str(next(_moments)))


def by_dimension(number: int, over: bool) -> Payload:
    criterion = {"metricName": "p99", "metricValue": 4, "dimensions": [{"name": "till", "value": str(number)}]}
    payload = AzureMonitor("7", BEGAN).alert("Resolved" if over else "Fired", "Sev2")
    payload["data"]["alertContext"]["condition"] = {"allOf": [criterion]}
    return payload


def by_labels(number: int, over: bool) -> Payload:
    payload = AzureMonitor("7", BEGAN).alert("Resolved" if over else "Fired", "Sev2")
    payload["data"]["alertContext"] = {"labels": {"till": str(number), "zone": "b"}, "annotations": {"summary": "Slow"}}
    return payload


def by_row(number: int, over: bool) -> Payload:
    payload = AzureMonitor("7", BEGAN).alert("Resolved" if over else "Fired", "Sev2")
    payload["data"]["alertContext"] = {"SearchQuery": "x", "Dimensions": [{"name": "till", "value": str(number)}]}
    return payload


def service_health(number: int, over: bool, stage: str = "") -> Payload:
    payload = AzureMonitor("7", BEGAN).alert(
        "Fired", "Sev4", monitoringService="ServiceHealth", signalType="Activity Log"
    )
    stage = stage or ("Resolved" if over else "Active")
    payload["data"]["alertContext"] = {
        "eventSource": "ServiceHealth",
        "level": "Warning",
        "status": "Resolved" if over else "Active",
        "properties": {
            "title": f"Delays in queues {number}",
            "service": "Service Bus",
            "region": "North Europe",
            "communication": "<p>Messages <b>wait</b> &amp; arrive late.</p>",
            "incidentType": "Incident",
            "trackingId": f"QW1X-{number}",
            "stage": stage,
        },
    }
    return payload


def by_budget(number: int, over: bool) -> Payload:
    assert not over, "a budget does not recover"
    payload = AzureMonitor("7", BEGAN).alert("Fired", "Sev4", alertRule=None, alertTargetIDs=None)
    payload["data"]["alertContext"] = {"AlertData": {"BudgetName": f"till {number}", "BudgetId": f"/budgets/{number}"}}
    return payload


def by_id(kind: type[MonitoringSystem]) -> Callable[[int, bool], Payload]:
    systems = {number: kind(f"INC{number}", BEGAN) for number in (1, 2)}
    return lambda number, over: systems[number].resolve() if over else systems[number].fire()


_moments = itertools.count(int(BEGAN.timestamp() * 1e3))
SENDERS = [
    Sender("alertmanager", by_alert(Alertmanager("7", BEGAN)), "alertmanager", True),
    Sender("grafana", by_alert(Grafana("7", BEGAN)), "grafana", True),
    Sender("datadog", by_scope, "datadog", True),
    Sender("azure metric", by_dimension, "azure_monitor", True),
    Sender("azure log", by_row, "azure_monitor", True),
    Sender("azure prometheus", by_labels, "azure_monitor", True),
    Sender("azure service health", service_health, "azure_monitor", False),
    *(
        Sender(kind.__name__, by_id(kind), kind.source, False)
        for kind in (
            AzureMonitor,
            Datadog,
            PagerDuty,
            Opsgenie,
            JiraServiceManagement,
            Sentry,
            SentryMetric,
            IncidentIo,
            IncidentIoAlert,
            ServiceNow,
            HomeMade,
        )
    ),
]


def resource_health(health: str, status: str) -> Payload:
    payload = service_health(1, over=False)
    payload["data"]["essentials"]["monitoringService"] = "ResourceHealth"
    payload["data"]["alertContext"] |= {
        "status": status,
        "properties": {"title": "Disk", "currentHealthStatus": health},
    }
    return payload


PAGERDUTY, OPSGENIE, SENTRY = PagerDuty("1", BEGAN), Opsgenie("1", BEGAN), Sentry("1", BEGAN)
INCIDENT_IO, SERVICENOW, DATADOG = IncidentIo("1", BEGAN), ServiceNow("1", BEGAN), Datadog("1", BEGAN)


def incident_io(category: str) -> Payload:
    payload = INCIDENT_IO.incident("Minor", category)
    update = {"incident": payload, "new_status": payload["incident_status"]}
    return INCIDENT_IO.told("public_incident.incident_status_updated_v2", update)


def note() -> Payload:
    payload = PAGERDUTY.event("annotated")
    payload["event"]["data"] = {"id": "N1", "type": "incident_note", "content": "Looking."}
    return payload


State = tuple[str, Payload, AlertStatus | None]


def states(sender: str, source: str, payload: Callable[[str], Payload], **names: Sequence[str]) -> dict[str, State]:
    """Return the payload of each state by its name, and what it means."""
    meanings = {status.value: status for status in AlertStatus}
    return {
        f"{sender} {name}": (source, payload(name), meanings[meaning])
        for meaning, several in names.items()
        for name in several
    }


OVER = ("Resolved", "Complete", "Canceled", "RCA")
STATES: dict[str, State] = {
    **states(
        "pagerduty",
        "pagerduty",
        PAGERDUTY.event,
        firing=("triggered", "acknowledged", "unacknowledged", "reopened"),
        resolved=("resolved",),
        updated=("escalated", "delegated", "reassigned", "priority_updated", "service_updated"),
    ),
    "pagerduty note": ("pagerduty", note(), NO_ALERT),
    **states(
        "opsgenie",
        "opsgenie",
        OPSGENIE.event,
        firing=("Create", "Acknowledge", "UnAcknowledge"),
        resolved=("Close", "Delete"),
        updated=(
            *("Snooze", "SnoozeEnded", "AddNote", "AddTags", "AssignOwnership", "TakeOwnership", "EscalateToNext"),
            *("UpdatePriority", "Restart the till"),
        ),
    ),
    **states(
        "sentry",
        "sentry",
        SENTRY.issue,
        firing=("created", "unresolved", "triggered"),
        resolved=("resolved", "archived", "ignored"),
        updated=("assigned",),
    ),
    "sentry comment": ("sentry", {"action": "created", "data": {"comment": "Looking.", "issue_id": 1}}, NO_ALERT),
    "sentry installation": ("sentry", {"action": "created", "data": {"installation": {"uuid": "a8e5"}}}, NO_ALERT),
    **states(
        "incident.io",
        "incident_io",
        incident_io,
        firing=("triage", "live", "paused"),
        resolved=("learning", "closed", "declined", "merged", "canceled"),
        updated=("of our own",),
    ),
    **states(
        "servicenow",
        "servicenow",
        lambda state: SERVICENOW.record(state, "3"),
        firing=("1", "2", "3", "In Progress"),
        resolved=("6", "7", "8", "Resolved", "Canceled"),
        updated=("12",),
    ),
    **states(
        "datadog",
        "datadog",
        DATADOG.event,
        firing=("Triggered", "Re-Triggered", "No Data", "Re-No Data", "Warn", "Re-Warn", "Renotify"),
        resolved=("Recovered",),
    ),
    **states(
        "azure",
        "azure_monitor",
        lambda stage: service_health(1, stage in OVER, stage),
        firing=("Active", "Planned", "In Progress", "Rescheduled"),
        resolved=OVER,
    ),
    "azure unavailable": ("azure_monitor", resource_health("Unavailable", "Active"), FIRING),
    "azure available": ("azure_monitor", resource_health("Available", "Updated"), RESOLVED),
    **states(
        "generic",
        "generic",
        HomeMade("1", BEGAN).event,
        firing=("OPEN", "re-opened", "No Data", "INSUFFICIENT_DATA", "renotify"),
        resolved=("deleted", "archived", "Recovered"),
        updated=("Suppressed", "muted"),
    ),
}
