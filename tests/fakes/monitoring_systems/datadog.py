"""Datadog."""

from __future__ import annotations

from typing import Any

from tests.fakes.monitoring_systems.system import RUNBOOK, TITLE, MonitoringSystem, Payload


class Datadog(MonitoringSystem):
    source = "datadog"
    acknowledges = False

    def event(self, transition: str, **changes: Any) -> Payload:
        at = self.later
        return {
            "id": f"{at.timestamp():.0f}",
            "title": f"[{transition} on {{host:till-7}}] {TITLE} {self.id}",
            "body": f"p99 is 4 s\n[Runbook]({RUNBOOK})",
            "date": str(int(self.began.timestamp() * 1e3)),
            "last_updated": str(int(at.timestamp() * 1e3)),
            "event_type": "metric_alert_monitor",
            "org": {"id": "11", "name": "Example"},
            "alert_id": self.id,
            "alert_transition": transition,
            "alert_type": "info",
            "alert_priority": "null",
            "alert_scope": "host:till-7",
            "tags": "service:till,env:live,loud",
            "link": "https://datadog.example/monitors/1",
            **changes,
        }

    def fire(self) -> Payload:
        return self.event("Triggered")

    def rated(self, severity: str) -> Payload:
        return self.event("Triggered", alert_priority=severity, alert_type="")

    def update(self) -> Payload:
        return self.event("Re-Triggered", alert_priority="P1")

    def resolve(self) -> Payload:
        return self.event("Recovered", alert_type="success")

    def ended(self, word: str) -> Payload:
        return self.event(word)

    def test(self) -> Payload:
        return self.event("Triggered", title=f"[TEST] [Triggered on {{host:till-7}}] {TITLE}")
