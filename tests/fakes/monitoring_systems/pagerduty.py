"""PagerDuty."""

from __future__ import annotations

from typing import Any

from tests.fakes.monitoring_systems.system import PERSON, RUNBOOK, TITLE, MonitoringSystem, Payload, hmac_hex


class PagerDuty(MonitoringSystem):
    source = "pagerduty"

    def event(self, kind: str, **changes: Any) -> Payload:
        at = self.later
        return {
            "event": {
                "id": f"01{self.id}{kind}{at.timestamp():.0f}",
                "event_type": f"incident.{kind}",
                "resource_type": "incident",
                "occurred_at": at.isoformat(),
                "agent": {"id": "PADA", "summary": PERSON, "type": "user_reference", "html_url": "https://x.example"},
                "client": None,
                "data": {
                    "id": self.id,
                    "type": "incident",
                    "self": f"https://api.pagerduty.example/incidents/{self.id}",
                    "html_url": f"https://pagerduty.example/incidents/{self.id}",
                    "number": 7,
                    "status": "triggered",
                    "incident_key": "d36",
                    "created_at": self.began.isoformat(),
                    "title": TITLE,
                    "service": {"id": "PTILL", "summary": "till", "type": "service_reference"},
                    "assignees": [],
                    "escalation_policy": {"id": "PESC", "summary": "Default"},
                    "teams": [{"id": "PPAY", "summary": "Payments", "type": "team_reference"}],
                    "priority": None,
                    "urgency": "low",
                    "conference_bridge": None,
                    "resolve_reason": None,
                    "body": {"type": "incident_body", "details": {"runbook": RUNBOOK, "load": 7}},
                }
                | changes,
            }
        }

    def fire(self) -> Payload:
        return self.event("triggered")

    def rated(self, severity: str) -> Payload:
        return self.event("triggered", priority={"summary": severity}, urgency="high")

    def update(self) -> Payload:
        return self.event("priority_updated", priority={"id": "P1", "summary": "P1", "type": "priority_reference"})

    def acknowledge(self) -> Payload:
        return self.event("acknowledged", status="acknowledged")

    def resolve(self) -> Payload:
        return self.event("resolved", status="resolved")

    def ended(self, word: str) -> Payload:
        target = {"summary": "[#6] The till is down", "html_url": "https://pagerduty.example/incidents/6"}
        reason = {"type": word, "incident": target} if word != "incident.resolved" else None
        return self.event("resolved", status="resolved", resolve_reason=reason)

    def test(self) -> Payload:
        payload = self.event("triggered")
        changes = {"event_type": "pagey.ping", "resource_type": "pagey", "agent": None}
        return {"event": payload["event"] | changes | {"data": {"message": "Hello", "type": "ping"}}}

    def headers(self, body: bytes, secret: str) -> dict[str, str]:
        return {"X-PagerDuty-Signature": f"v1={hmac_hex(body, 'the former secret')},v1={hmac_hex(body, secret)}"}
