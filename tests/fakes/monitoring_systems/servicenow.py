"""ServiceNow, as the business rule in docs/webhooks.md sends its incidents."""

from __future__ import annotations

from typing import Any

from tests.fakes.monitoring_systems.system import PERSON, RUNBOOK, TITLE, MonitoringSystem, Payload


class ServiceNow(MonitoringSystem):
    source = "servicenow"
    tests = False

    def record(self, state: str, priority: str, **changes: Any) -> Payload:
        return {
            "sys_id": f"9d385017c611228701d22104cc95{self.id}",
            "number": "INC0000055",
            "short_description": TITLE,
            "description": f"p99 is 4 s. Runbook: {RUNBOOK}",
            "state": state,
            "priority": priority,
            "opened_at": f"{self.began:%Y-%m-%d %H:%M:%S}",
            "sys_updated_on": f"{self.later:%Y-%m-%d %H:%M:%S}",
            "close_notes": None,
            "cmdb_ci": "till-db-1",
            "business_service": "till",
            "assignment_group": "Payments",
            "assigned_to": "",
            "link": "https://shop.service-now.com/incident.do?sys_id=9d38",
        } | changes

    def fire(self) -> Payload:
        return self.record("1", "3")

    def rated(self, severity: str) -> Payload:
        return self.record("1", severity)

    def update(self) -> Payload:
        return self.record("1", "1")

    def acknowledge(self) -> Payload:
        return self.record("2", "3", assigned_to=PERSON)

    def ended(self, word: str) -> Payload:
        state = {"resolved": "6", "closed": "7", "canceled": "8", "cancelled": "Cancelled"}.get(word, "6")
        code = {} if word in {"resolved", "closed", "canceled", "cancelled"} else {"close_code": word.title()}
        return self.record(state, "3", close_notes="As in INC0000054.", parent_incident="INC0000054", **code)

    def resolve(self) -> Payload:
        return self.record("6", "1", close_notes="The pool has its former size.")
