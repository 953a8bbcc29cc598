"""The alerts of Prometheus, HTTP API: https://prometheus.io/docs/prometheus/latest/querying/api/#rules"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import AliasPath, BaseModel, Field, TypeAdapter

from adapters.http import Http
from adapters.tools.parts import Items, gaps_in
from core.model.alert import AlertStatus
from core.model.incident import Incident
from core.model.silences import Silence


class _Active(BaseModel):
    labels: dict[str, str]
    state: str


class _Rule(BaseModel):
    name: str
    type: str = "alerting"
    alerts: Items[_Active] = []


class _Group(BaseModel):
    rules: Items[_Rule]


class _Rules(BaseModel):
    groups: Items[_Group] = Field(validation_alias=AliasPath("data", "groups"))


_RULES = TypeAdapter(_Rules)


@dataclass(frozen=True, slots=True)
class PrometheusAlerts:
    """AlertMonitor over Prometheus or a compatible server."""

    name: str
    http: Http

    async def firing(self, incident: Incident) -> bool | None:
        """Return whether an alert fires, by labels.

        External labels are added later, so an alert may have additional ones.
        """
        mine = [alert for alert in incident.alerts if alert.status is AlertStatus.FIRING]
        rules = (await self.http.parsed("api/v1/rules", _RULES, {"type": "alert"})).groups
        named = [rule for group in rules for rule in group.rules if rule.name in {alert.name for alert in mine}]
        if not named:
            return None
        firing = [active for rule in named for active in rule.alerts if active.state == "firing"]
        if any(active.labels.items() <= alert.labels.items() for active in firing for alert in mine):
            return True
        return None if any(gaps_in(rule.alerts) for rule in named) else False

    async def silences(self) -> list[Silence]:
        return []
