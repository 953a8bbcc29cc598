"""The alerts of Prometheus, HTTP API: https://prometheus.io/docs/prometheus/latest/querying/api/#rules"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import AliasPath, BaseModel, Field, TypeAdapter

from adapters.edge import Items, gaps_in
from adapters.http import Http
from core.model.alert import Alert, AlertStatus
from core.model.incident import Incident
from core.model.silences import Silence
from core.ports import AlertState


class _Active(BaseModel):
    labels: dict[str, str]
    state: str


class _Rule(BaseModel):
    name: str
    type: str = "alerting"
    health: str = "ok"
    problem: str | None = Field("", validation_alias="lastError")
    alerts: Items[_Active] = []

    def doubt(self, mine: Sequence[Alert]) -> str:
        """Return the reason why one of my alerts may fire although the rule does not say so; empty if there is none."""
        if self.health != "ok":
            return f"the rule {self.name} was not evaluated ({self.problem or self.health})"
        if any(_is_of(active, mine) for active in self.alerts):
            return f"the rule {self.name} is pending"
        return next((f"of the alerts of {self.name}, {gap.detail}" for gap in gaps_in(self.alerts)), "")


class _Group(BaseModel):
    rules: Items[_Rule]


class _Rules(BaseModel):
    groups: Items[_Group] = Field(validation_alias=AliasPath("data", "groups"))
    warnings: list[str] | None = None  # for example of Thanos, one of whose rulers did not answer


_RULES = TypeAdapter(_Rules)


@dataclass(frozen=True, slots=True)
class PrometheusAlerts:
    """AlertMonitor over Prometheus or a compatible server."""

    name: str
    http: Http

    async def firing(self, incident: Incident) -> AlertState:
        """Return whether an alert fires, by labels.

        External labels are added later, so an alert may have additional ones. A rule that is pending, or that could not
        be evaluated, cannot tell.
        """
        mine = [alert for alert in incident.alerts if alert.status is AlertStatus.FIRING]
        answer = await self.http.parsed("api/v1/rules", _RULES, {"type": "alert"})
        names = {alert.name for alert in mine}
        named = [rule for group in answer.groups for rule in group.rules if rule.name in names]
        if any(active.state == "firing" and _is_of(active, mine) for rule in named for active in rule.alerts):
            return AlertState(fires=True)
        doubts = [*filter(None, (rule.doubt(mine) for rule in named)), *((answer.warnings or ()) if mine else ())]
        return AlertState(None if doubts or not named else False, next(iter(doubts), ""))

    async def silences(self) -> list[Silence]:
        return []


def _is_of(active: _Active, alerts: Sequence[Alert]) -> bool:
    return any(active.labels.items() <= alert.labels.items() for alert in alerts)
