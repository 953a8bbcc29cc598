"""Monitoring systems that send webhooks: each tells the story of one incident in its own format, and signs it."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
from datetime import UTC, datetime, timedelta
from typing import Any

Payload = dict[str, Any]

PERSON = "Ada Quist"
TITLE = "Charges wait for a connection"


def hmac_hex(body: bytes, secret: str) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


class MonitoringSystem:
    """One incident called `id`. Every request is made a second later than the one before it."""

    source = ""
    acknowledges = True  # whether it knows acknowledgements at all
    tests = True  # whether it has test notifications

    def __init__(self, id_: str = "1", began: datetime | None = None) -> None:
        self.id = id_
        self.began = began or datetime.now(UTC) - timedelta(minutes=4)
        self._seconds = itertools.count(1)

    @property
    def later(self) -> datetime:
        return self.began + timedelta(seconds=next(self._seconds))

    def fire(self) -> Payload:
        raise NotImplementedError

    def update(self) -> Payload:
        """It is worse than it was."""
        raise NotImplementedError

    def acknowledge(self) -> Payload:
        raise NotImplementedError

    def resolve(self) -> Payload:
        raise NotImplementedError

    def test(self) -> Payload:
        raise NotImplementedError

    def headers(self, body: bytes, secret: str) -> dict[str, str]:
        """What shows who sends it: a token, unless it signs."""
        return {"Authorization": f"Bearer {secret}"}


def encoded(payload: Payload) -> bytes:
    return json.dumps(payload).encode()


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
                }
                | changes,
            }
        }

    def fire(self) -> Payload:
        return self.event("triggered")

    def update(self) -> Payload:
        return self.event("priority_updated", priority={"id": "P1", "summary": "P1", "type": "priority_reference"})

    def acknowledge(self) -> Payload:
        return self.event("acknowledged", status="acknowledged")

    def resolve(self) -> Payload:
        return self.event("resolved", status="resolved")

    def test(self) -> Payload:
        payload = self.event("triggered")
        changes = {"event_type": "pagey.ping", "resource_type": "pagey", "agent": None}
        return {"event": payload["event"] | changes | {"data": {"message": "Hello", "type": "ping"}}}

    def headers(self, body: bytes, secret: str) -> dict[str, str]:
        return {"X-PagerDuty-Signature": f"v1={hmac_hex(body, 'the former secret')},v1={hmac_hex(body, secret)}"}


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
            "details": {"zone": "b"},
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

    def update(self) -> Payload:
        return self.event("UpdatePriority", priority="P1")

    def acknowledge(self) -> Payload:
        return self.event("Acknowledge")

    def resolve(self) -> Payload:
        return self.event("Close")


class Grafana(MonitoringSystem):
    source = "grafana"
    acknowledges = False
    fired = 0

    def group(self, status: str, labels: dict[str, str], **changes: Any) -> Payload:
        alert = {
            "status": status,
            "labels": labels,
            "annotations": {"summary": TITLE, "description": "p99 is 4 s"},
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

    def update(self) -> Payload:
        labels = {"alertname": "LatencyHigh", "service": "till", "severity": "critical"}
        return self.group("firing", labels, fingerprint="another")

    def resolve(self) -> Payload:
        payload = self.group("resolved", {"alertname": "LatencyHigh", "service": "till", "severity": "info"})
        payload["alerts"].append(payload["alerts"][0] | {"fingerprint": "another"})
        return payload

    def test(self) -> Payload:
        return self.group("firing", {"alertname": "TestAlert", "instance": "Grafana"})

    def headers(self, body: bytes, secret: str) -> dict[str, str]:
        return {"X-Grafana-Alerting-Signature": hmac_hex(body, secret)}


class Datadog(MonitoringSystem):
    source = "datadog"
    acknowledges = False

    def event(self, transition: str, **changes: Any) -> Payload:
        at = self.later
        return {
            "id": f"{at.timestamp():.0f}",
            "title": f"[{transition} on {{host:till-7}}] {TITLE} {self.id}",
            "body": "p99 is 4 s",
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

    def update(self) -> Payload:
        return self.event("Re-Triggered", alert_priority="P1")

    def resolve(self) -> Payload:
        return self.event("Recovered", alert_type="success")

    def test(self) -> Payload:
        return self.event("Triggered", title=f"[TEST] [Triggered on {{host:till-7}}] {TITLE}")


class Sentry(MonitoringSystem):
    source = "sentry"
    tests = False

    def issue(self, action: str, **changes: Any) -> Payload:
        return {
            "action": action,
            "installation": {"uuid": "a8e5"},
            "actor": {"type": "user", "id": 1, "name": PERSON},
            "data": {
                "issue": {
                    "id": self.id,
                    "shortId": "TILL-1",
                    "title": TITLE,
                    "culprit": "till.charge",
                    "level": "info",
                    "priority": "low",
                    "status": "unresolved",
                    "project": {"id": "1", "name": "Till", "slug": "till", "platform": "python"},
                    "assignedTo": None,
                    "web_url": "https://sentry.example/issues/1/",
                    "permalink": "https://sentry.example/issues/1/",
                    "firstSeen": self.began.isoformat(),
                    "lastSeen": self.later.isoformat(),
                }
                | changes
            },
        }

    def fire(self) -> Payload:
        return self.issue("created")

    def update(self) -> Payload:
        """The alert about the same issue."""
        return {
            "action": "triggered",
            "installation": {"uuid": "a8e5"},
            "actor": {"id": "sentry", "name": "Sentry", "type": "application"},
            "data": {
                "event": {
                    "event_id": f"e4874d{next(self._seconds)}",
                    "issue_id": self.id,
                    "title": TITLE,
                    "culprit": "till.charge",
                    "level": "fatal",
                    "datetime": self.began.isoformat(),
                    "project": 1,
                    "url": "https://sentry.example/api/0/projects/shop/till/events/e48/",
                    "web_url": "https://sentry.example/issues/1/events/e48/",
                    "tags": [["zone", "b"], ["level", "fatal"]],
                },
                "triggered_rule": "Very many errors",
            },
        }

    def acknowledge(self) -> Payload:
        return self.issue("assigned", assignedTo={"type": "user", "id": "1", "name": PERSON, "email": "ada@x.example"})

    def resolve(self) -> Payload:
        return self.issue("resolved", status="resolved")

    def headers(self, body: bytes, secret: str) -> dict[str, str]:
        return {"Sentry-Hook-Resource": "issue", "Sentry-Hook-Signature": hmac_hex(body, secret)}


class SentryMetric(Sentry):
    acknowledges = False

    def metric(self, action: str) -> Payload:
        return {
            "action": action,
            "actor": {"id": "sentry", "name": "Sentry", "type": "application"},
            "installation": {"uuid": "a8e5"},
            "data": {
                "description_text": "1000 events in the last 10 minutes",
                "description_title": f"{action}: {TITLE}",
                "web_url": "https://sentry.example/alerts/1/",
                "metric_alert": {
                    "id": str(next(self._seconds)),
                    "identifier": "1",
                    "title": "Marmot",
                    "date_started": self.began.isoformat(),
                    "date_closed": None,
                    "projects": ["till"],
                    "status": 2,
                    "alert_rule": {"id": self.id, "name": TITLE, "query": "level:error", "environment": None},
                },
            },
        }

    def fire(self) -> Payload:
        return self.metric("warning")

    def update(self) -> Payload:
        return self.metric("critical")

    def resolve(self) -> Payload:
        return self.metric("resolved")


class HomeMade(MonitoringSystem):
    """A tool of one's own, read by the paths of GENERIC."""

    source = "generic"

    def event(self, state: str, **changes: Any) -> Payload:
        check = {"id": self.id, "name": TITLE, "state": state, "at": self.later.isoformat()}
        return {
            "check": check | {"level": "info", **changes},
            "where": {"service": "till", "zone": "b"},
            "by": [PERSON],
        }

    def fire(self) -> Payload:
        return self.event("DOWN")

    def update(self) -> Payload:
        return self.event("worse", level="critical")

    def acknowledge(self) -> Payload:
        return self.event("acked")

    def resolve(self) -> Payload:
        return self.event("up")

    def test(self) -> Payload:
        return self.event("test")


GENERIC: Payload = {
    "title": "$.check.name",
    "group": "$.check.id",
    "status": "$.check.state",
    "by": "$.by[0]",
    "service": "$.where.service",
    "severity": "$.check.level",
    "updated_at": "$.check.at",
    "labels": {"zone": "$.where.zone"},
    "statuses": {"worse": "updated"},
}

SYSTEMS: tuple[type[MonitoringSystem], ...] = (PagerDuty, Opsgenie, Grafana, Datadog, Sentry, SentryMetric, HomeMade)
