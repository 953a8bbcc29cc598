"""Grafana."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.fakes.monitoring_systems.system import RUNBOOK, TITLE, MonitoringSystem, Payload, hmac_hex


class Grafana(MonitoringSystem):
    source = "grafana"
    acknowledges = False
    fired = 0

    def group(self, status: str, labels: dict[str, str], **changes: Any) -> Payload:
        alert = {
            "status": status,
            "labels": labels,
            "annotations": {"summary": TITLE, "description": "p99 is 4 s", "runbook_url": RUNBOOK},
            "startsAt": self.began.isoformat(),
            "endsAt": self.later.isoformat() if status == "resolved" else "0001-01-01T00:00:00Z",
            "values": {"B": 44.2, "C": 1},
            "generatorURL": "https://grafana.example/alerting/1/edit",
            "fingerprint": "c6eadffa33fcdf37",
            "silenceURL": "https://grafana.example/alerting/silence/new",
            "dashboardURL": "",
            "panelURL": "",
        }
        return {
            "receiver": "plumbline",
            "status": status,
            "orgId": 1,
            "alerts": [alert | changes],
            "groupLabels": {},
            "commonLabels": labels,
            "commonAnnotations": {},
            "externalURL": "https://grafana.example/",
            "version": "1",
            "groupKey": f"{{}}:{{alertname={self.id}}}",
            "truncatedAlerts": 0,
            "title": "[FIRING:1]",
            "state": "alerting",
            "message": "",
        }

    def fire(self) -> Payload:
        """It begins anew each time, as an alert does that fires again."""
        self.fired += 1
        began = (self.began + timedelta(seconds=self.fired)).isoformat()
        labels = {"alertname": "LatencyHigh", "service": "till", "severity": "info"}
        return self.group("firing", labels, startsAt=began)

    def rated(self, severity: str) -> Payload:
        return self.group("firing", {"alertname": "LatencyHigh", "priority": severity})

    def update(self) -> Payload:
        labels = {"alertname": "LatencyHigh", "service": "till", "severity": "critical"}
        return self.group("firing", labels, fingerprint="another")

    def resolve(self) -> Payload:
        payload = self.group("resolved", {"alertname": "LatencyHigh", "service": "till", "severity": "info"})
        payload["alerts"].append(payload["alerts"][0] | {"fingerprint": "another"})
        return payload

    def ended(self, word: str) -> Payload:
        annotations = {"summary": TITLE, "cause": "A loop.", "fix": "Roll back."}
        reason = {"grafana_state_reason": word} if word != "resolved" else {}
        labels = {"alertname": "LatencyHigh", "service": "till", "severity": "info"}
        return self.group("resolved", labels, annotations=annotations | reason)

    def test(self) -> Payload:
        return self.group("firing", {"alertname": "TestAlert", "instance": "Grafana"})

    def headers(self, body: bytes, secret: str) -> dict[str, str]:
        return {"X-Grafana-Alerting-Signature": hmac_hex(body, secret)}
