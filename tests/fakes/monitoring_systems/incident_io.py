"""incident.io: its incidents, and the alerts of its on-call product."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from typing import Any

from tests.fakes.monitoring_systems.system import PERSON, RUNBOOK, TITLE, MonitoringSystem, Payload


class IncidentIo(MonitoringSystem):
    source = "incident_io"
    names_runbook = True

    def incident(self, severity: str, category: str, **changes: Any) -> Payload:
        field = {"id": "01FCNDV6P870", "name": "Affected service", "field_type": "single_select", "options": []}
        return {
            "id": f"01FDAG4SAP-{self.id}",
            "name": TITLE,
            "reference": "INC-7",
            "summary": f"p99 is 4 s. Runbook: {RUNBOOK}",
            "mode": "standard",
            "visibility": "public",
            "permalink": "https://app.incident.io/shop/incidents/7",
            "created_at": self.began.isoformat().replace("+00:00", "Z"),
            "updated_at": self.later.isoformat().replace("+00:00", "Z"),
            "incident_status": {"id": "01FCNDV6P871", "name": category.title(), "category": category, "rank": 4},
            "severity": {"id": "01FH5TZRWMNAF", "name": severity, "rank": 1, "description": ""},
            "incident_role_assignments": [
                {"role": {"id": "01FH5TZRWMNAG", "name": "Lead", "role_type": "lead"}, "assignee": None}
            ],
            "custom_field_entries": [
                {"custom_field": field, "values": [{"value_option": {"id": "01", "sort_key": 1, "value": "till"}}]}
            ],
        } | changes

    def told(self, kind: str, payload: Payload) -> Payload:
        return {"event_type": kind, kind: payload}

    def fire(self) -> Payload:
        return self.told("public_incident.incident_created_v2", self.incident("Minor", "triage"))

    def rated(self, severity: str) -> Payload:
        return self.told("public_incident.incident_created_v2", self.incident(severity, "live"))

    def update(self) -> Payload:
        return self.told("public_incident.incident_updated_v2", self.incident("Critical", "live"))

    def acknowledge(self) -> Payload:
        person = {"id": "01FCQSP07Z74", "name": PERSON, "email": "ada@shop.example", "role": "viewer"}
        lead = {"role": {"id": "01FH5TZRWMNAG", "name": "Lead", "role_type": "lead"}, "assignee": person}
        changed = self.incident("Minor", "live", incident_role_assignments=[lead])
        return self.told("public_incident.incident_updated_v2", changed)

    def resolve(self) -> Payload:
        return self.closed("closed")

    def closed(self, category: str) -> Payload:
        closed = self.incident("Critical", category)
        update = {"incident": closed, "message": "Over.", "new_status": closed["incident_status"]}
        return self.told("public_incident.incident_status_updated_v2", update | {"previous_status": {}})

    def ended(self, word: str) -> Payload | None:
        return self.closed(word) if word != "resolved" else None

    def test(self) -> Payload:
        return self.told("public_incident.incident_created_v2", self.incident("Minor", "triage", mode="test"))

    def headers(self, body: bytes, secret: str) -> dict[str, str]:
        """Sign as the Svix libraries do, also by the former secret; a secret that is not Base64 is the key itself."""
        at = f"{time.time():.0f}"
        try:
            key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        except ValueError:
            key = secret.encode()
        digests = (hmac.new(each, f"msg_1.{at}.".encode() + body, hashlib.sha256).digest() for each in (b"old", key))
        signature = " ".join(f"v1,{base64.b64encode(each).decode()}" for each in digests)
        return {"webhook-id": "msg_1", "webhook-timestamp": at, "webhook-signature": signature}


class IncidentIoAlert(IncidentIo):
    acknowledges = False
    tests = False

    def alert(self, status: str, priority: str) -> Payload:
        attributes = {"Service": "till", "Priority": priority, "Runbook": RUNBOOK}
        return {
            "id": f"01GW2G3V0S-{self.id}",
            "alert_source_id": "01GW2G3V0S59",
            "deduplication_key": f"till-{self.id}",
            "title": TITLE,
            "description": "p99 is 4 s",
            "status": status,
            "source_url": "https://alerts.example/1",
            "created_at": self.began.isoformat(),
            "updated_at": self.later.isoformat(),
            "attributes": [
                {
                    "attribute": {"id": "01GW", "name": name, "type": "String", "array": False, "required": False},
                    "value": {"label": value, "literal": value},
                }
                for name, value in attributes.items()
            ],
        }

    def fire(self) -> Payload:
        return self.told("public_alert.alert_created_v1", self.alert("firing", "P3"))

    def update(self) -> Payload:
        return self.told("public_alert.alert_created_v1", self.alert("firing", "P1"))

    def resolve(self) -> Payload:
        return self.told("public_alert.alert_resolved_v1", self.alert("resolved", "P1"))

    def ended(self, word: str) -> Payload | None:
        of_incidents = {"merged", "closed", "learning", "declined", "canceled"}
        return self.told("public_alert.alert_resolved_v1", self.alert(word, "P1")) if word not in of_incidents else None
