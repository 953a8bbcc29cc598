"""Azure Monitor, with the common alert schema."""

from __future__ import annotations

from typing import Any

from tests.fakes.monitoring_systems.system import RUNBOOK, TITLE, MonitoringSystem, Payload

TARGET = "/subscriptions/0000/resourcegroups/shop/providers/microsoft.web/sites/till"


class AzureMonitor(MonitoringSystem):
    source = "azure_monitor"
    acknowledges = False

    def alert(self, condition: str, severity: str, **changes: Any) -> Payload:
        at = f"{self.later:%Y-%m-%dT%H:%M:%S}.0000000Z"
        essentials = {
            "alertId": f"/subscriptions/0000/providers/Microsoft.AlertsManagement/alerts/{at}",
            "alertRule": TITLE,
            "severity": severity,
            "signalType": "Metric",
            "monitorCondition": condition,
            "monitoringService": "Platform",
            "alertTargetIDs": [f"{TARGET}-{self.id}"],
            "configurationItems": ["till"],
            "originAlertId": f"0000_{self.id}",
            "firedDateTime": at if condition == "Fired" else self.began.isoformat(),
            "description": "p99 is 4 s",
            "essentialsVersion": "1.0",
            "alertContextVersion": "1.0",
        } | ({"resolvedDateTime": at} if condition == "Resolved" else {})
        return {
            "schemaId": "azureMonitorCommonAlertSchema",
            "data": {
                "essentials": essentials | changes,
                "alertContext": {"properties": None, "conditionType": "SingleResourceMultipleMetricCriteria"},
                "customProperties": {"zone": "b", "runbook_url": RUNBOOK},
            },
        }

    def fire(self) -> Payload:
        return self.alert("Fired", "Sev2")

    def rated(self, severity: str) -> Payload:
        return self.alert("Fired", severity)

    def update(self) -> Payload:
        return self.alert("Fired", "Sev0")

    def resolve(self) -> Payload:
        return self.alert("Resolved", "Sev0")

    def ended(self, word: str) -> Payload | None:
        return self.resolve() if word == "resolved" else None

    def test(self) -> Payload:
        return self.alert("Fired", "Sev3", alertRule="test-alertRule")


class AzureServiceHealth(AzureMonitor):
    """Events of Azure itself, which are sent as fired even when they are over."""

    tests = False

    def event(self, stage: str, level: str) -> Payload:
        payload = self.alert("Fired", "Sev4", monitoringService="ServiceHealth", signalType="Activity Log")
        payload["data"]["alertContext"] = {
            "eventSource": "ServiceHealth",
            "eventTimestamp": self.later.isoformat(),
            "level": level,
            "properties": {
                "title": TITLE,
                "service": "till",
                "incidentType": "Incident",
                "trackingId": f"QW1X-{self.id}",
                "stage": stage,
            },
        }
        return payload

    def fire(self) -> Payload:
        return self.event("Active", "Informational")

    def rated(self, severity: str) -> Payload:
        return self.event("Active", severity)

    def update(self) -> Payload:
        return self.event("Active", "1")

    def resolve(self) -> Payload:
        return self.event("Resolved", "1")

    def ended(self, word: str) -> Payload:
        return self.event(word.title(), "1")
