"""Sentry: its issues, and its alerts on metrics."""

from __future__ import annotations

from typing import Any

from tests.fakes.monitoring_systems.system import PERSON, TITLE, MonitoringSystem, Payload, hmac_hex


class Sentry(MonitoringSystem):
    source = "sentry"
    tests = False
    names_runbook = False

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

    def rated(self, severity: str) -> Payload:
        return self.issue("created", level=severity, priority="")

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

    def ended(self, word: str) -> Payload | None:
        if "rule" in word:
            return None
        action, _, after = word.partition(" after ")
        return self.issue(action, status=action, statusDetails={"autoResolved": True} if after else {})

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

    def ended(self, word: str) -> Payload | None:
        action, _, by = word.partition(" by ")
        if action != "resolved":
            return None
        payload = self.metric(action)
        payload["data"]["metric_alert"]["status_method"] = 2 if by else 3
        return payload
