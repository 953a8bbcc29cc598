"""Opsgenie and Jira Service Management."""

from __future__ import annotations

from typing import Any

from tests.fakes.monitoring_systems.system import PERSON, RUNBOOK, TITLE, MonitoringSystem, Payload


class Opsgenie(MonitoringSystem):
    source = "opsgenie"
    tests = False

    def event(self, action: str, **changes: Any) -> Payload:
        at = self.later
        alert = {
            "alertId": f"44f7-{self.id}",
            "alias": f"till-latency-{self.id}",
            "message": TITLE,
            "description": "p99 is 4 s",
            "username": PERSON,
            "userId": "4caa",
            "tinyId": "454",
            "entity": "",
            "source": "Prometheus",
            "tags": ["service:till", "loud"],
            "teams": ["Payments"],
            "details": {"zone": "b", "Runbook URL": RUNBOOK},
            "priority": "P4",
            "createdAt": int(self.began.timestamp() * 1e3),
            "updatedAt": int(at.timestamp() * 1e6) * 1000,
        }
        return {
            "action": action,
            "alert": alert | changes,
            "source": {"name": "Prometheus", "type": "api"},
            "integrationId": "37c8",
            "integrationName": "Webhook",
        }

    def fire(self) -> Payload:
        return self.event("Create")

    def rated(self, severity: str) -> Payload:
        return self.event("Create", priority=severity)

    def update(self) -> Payload:
        return self.event("UpdatePriority", priority="P1")

    def acknowledge(self) -> Payload:
        return self.event("Acknowledge")

    def resolve(self) -> Payload:
        return self.event("Close")

    def ended(self, word: str) -> Payload:
        return self.event(word)


class JiraServiceManagement(Opsgenie):
    source = "jira_service_management"
