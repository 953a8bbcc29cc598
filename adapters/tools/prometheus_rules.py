"""Firing alerts of a Prometheus server: https://prometheus.io/docs/prometheus/latest/querying/api/#rules"""

from __future__ import annotations

from pydantic import BaseModel, TypeAdapter

from adapters.http import Http
from core.model.incident import Alert, AlertStatus, Incident
from core.model.silences import Silence


class _Active(BaseModel):
    labels: dict[str, str]
    state: str


class _Rule(BaseModel):
    name: str
    type: str = "alerting"
    alerts: list[_Active] = []


class _Group(BaseModel):
    rules: list[_Rule]


class _Groups(BaseModel):
    groups: list[_Group]


class _Rules(BaseModel):
    data: _Groups


_RULES = TypeAdapter(_Rules)


class PrometheusRules:
    """Implements `core.ports.AlertMonitor` over Prometheus or a compatible server."""

    def __init__(self, name: str, http: Http) -> None:
        self.name = name
        self._http = http

    async def firing(self, incident: Incident) -> bool | None:
        """Return whether an alert fires, by labels.

        External labels are added later, so an alert may have additional ones.
        """
        mine = [alert for alert in incident.alerts if alert.status is AlertStatus.FIRING]
        rules = (await self._http.parsed("api/v1/rules", _RULES, {"type": "alert"})).data.groups
        named = [rule for group in rules for rule in group.rules if rule.name in {alert.name for alert in mine}]
        if not named:
            return None
        return any(_is_one(active, alert) for rule in named for active in rule.alerts for alert in mine)

    async def silences(self) -> list[Silence]:
        return []


def _is_one(active: _Active, alert: Alert) -> bool:
    return active.state == "firing" and active.labels.items() <= alert.labels.items()
