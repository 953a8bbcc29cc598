"""A monitoring system of one's own, and how its webhooks are read."""

from __future__ import annotations

from typing import Any

from tests.fakes.monitoring_systems.system import PERSON, RUNBOOK, TITLE, MonitoringSystem, Payload


class HomeMade(MonitoringSystem):
    """A tool of one's own, read by the paths of GENERIC."""

    source = "generic"

    def event(self, state: str, **changes: Any) -> Payload:
        check = {"id": self.id, "name": TITLE, "state": state, "at": self.later.isoformat()}
        return {
            "check": check | {"level": "info", **changes},
            "where": {"service": "till", "zone": "b", "manual": RUNBOOK},
            "by": [PERSON],
        }

    def fire(self) -> Payload:
        return self.event("DOWN")

    def rated(self, severity: str) -> Payload:
        return self.event("down", level=severity)

    def update(self) -> Payload:
        return self.event("worse", level="critical")

    def acknowledge(self) -> Payload:
        return self.event("acked")

    def resolve(self) -> Payload:
        return self.event("up")

    def ended(self, word: str) -> Payload:
        return self.event(word)

    def test(self) -> Payload:
        return self.event("test")


GENERIC: Payload = {
    "title": "$.check.name",
    "group": "$.check.id",
    "status": "$.check.state",
    "by": "$.by[0]",
    "service": "$.where.service",
    "severity": "$.check.level",
    "runbook": "$.where.manual",
    "updated_at": "$.check.at",
    "labels": {"zone": "$.where.zone"},
    "statuses": {"worse": "updated"},
}
