"""An Alertmanager and a Prometheus as far as they are asked about alerts, with what their APIs are documented to answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web

from tests.samples import alert, incident

NOW = datetime.now(UTC)
HOUR = timedelta(hours=1)
FIRING = replace(
    alert(), fingerprint="f1", labels={"alertname": "Slow", "cluster": "north", "region": "eu"}, name="Slow"
)
INCIDENT = incident(source="alertmanager", alerts=(FIRING,), service="payment-gateway")


class Systems:
    """An Alertmanager and a Prometheus that answer what they are told to."""

    def __init__(self) -> None:
        self.alerts: Any = []
        self.silences: Any = []
        self.up_since = NOW - HOUR
        self.rules: Any = []
        self.warnings: list[str] = []
        self.asked: list[str] = []
        self.status = 200

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        answers: dict[str, Any] = {
            "/api/v2/alerts": self.alerts,
            "/api/v2/silences": self.silences,
            "/api/v2/status": {"uptime": self.up_since.isoformat(), "cluster": {"status": "ready", "peers": []}},
            "/api/v1/rules": {"status": "success", "data": {"groups": [{"name": "g", "rules": self.rules}]}}
            | ({"warnings": self.warnings} if self.warnings else {}),
        }
        return web.json_response(answers[request.path], status=self.status)


def known_alert(fingerprint: str, state: str = "active") -> dict[str, Any]:
    status = {"state": state, "silencedBy": [], "inhibitedBy": [], "mutedBy": []}
    return {"fingerprint": fingerprint, "status": status, "labels": {"alertname": "Slow"}, "annotations": {}}


def silence(state: str = "active", **matcher: Any) -> dict[str, Any]:
    return {
        "id": "5a3c",
        "status": {"state": state},
        "startsAt": (NOW - HOUR).isoformat(),
        "endsAt": (NOW + HOUR).isoformat(),
        "updatedAt": NOW.isoformat(),
        "comment": "new\nledger",
        "createdBy": "ada",
        "matchers": [{"name": "cluster", "value": "north", "isRegex": False, "isEqual": True} | matcher],
    }


def rule(
    name: str = "Slow", state: str = "firing", health: str = "ok", error: str = "", **labels: str
) -> dict[str, Any]:
    active = {"labels": {"alertname": name, **labels}, "annotations": {}, "state": state, "value": "4e+00"}
    evaluated = {"health": health, "lastError": error}
    return {"name": name, "type": "alerting", "query": "x > 1", "alerts": [active] if state else [], **evaluated}
