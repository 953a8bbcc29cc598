"""The alerts of Alertmanager and of Prometheus."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from pydantic import AliasPath, BaseModel, Field, TypeAdapter

from adapters.http import Http, Items, Moment, gaps_in, typed
from adapters.section import EnvironmentName, Host, Url
from adapters.tools.section import Tools, ToolSection, open_http
from core.model.alert import Alert, AlertStatus
from core.model.incident import Incident
from core.model.silences import Matcher, Silence
from core.ports import AlertState, Partial

KEPT = 10.0  # seconds for which silences are cached, so that a storm causes one request
SETTLED = timedelta(minutes=5)  # after its start, when an Alertmanager has received every firing alert
MAX_SILENCES = 1_000  # in force, per Alertmanager
MAX_REASON = 200  # characters of a comment


class _Alert(BaseModel):
    fingerprint: str


class _Uptime(BaseModel):
    uptime: Moment


class _Matcher(BaseModel):
    name: str
    value: str
    isRegex: bool
    isEqual: bool = True  # missing before version 0.22


class _Silence(BaseModel):
    id: str
    state: str = Field(validation_alias=AliasPath("status", "state"))
    startsAt: Moment
    endsAt: Moment
    comment: str = ""
    createdBy: str = ""
    matchers: list[_Matcher]


_ALERTS = TypeAdapter(Items[_Alert])
_SILENCES = TypeAdapter(Items[_Silence])
_UPTIME = TypeAdapter(_Uptime)


class Alertmanager:
    """Implements `core.ports.AlertMonitor` and `CheckedTool` for one Alertmanager and the alerts of `source`."""

    def __init__(self, name: str, http: Http, source: str) -> None:
        self.name = name
        self._http = http
        self._source = source
        self._silences: list[Silence] = []
        self._read_at = float("-inf")

    async def check(self) -> None:
        await self._http.parsed("api/v2/status", _UPTIME)

    async def firing(self, incident: Incident) -> AlertState:
        """Return whether an alert fires, by fingerprint.

        An Alertmanager that started a moment ago cannot tell that none does.
        """
        mine = {alert.fingerprint for alert in incident.alerts if alert.status is AlertStatus.FIRING}
        if incident.source != self._source or not mine:
            return AlertState(None)
        every = await self._http.parsed("api/v2/alerts", _ALERTS, {"active": "true", "silenced": "true"})
        if any(alert.fingerprint in mine for alert in every):
            return AlertState(fires=True)
        if gaps := gaps_in(every):
            return AlertState(None, f"of its alerts, {gaps[0].detail}")
        is_settled = datetime.now(UTC) - (await self._http.parsed("api/v2/status", _UPTIME)).uptime > SETTLED
        return AlertState(fires=False) if is_settled else AlertState(None, "it started a moment ago")

    async def silences(self) -> list[Silence]:
        if time.monotonic() - self._read_at > KEPT:
            read = await self._http.parsed("api/v2/silences", _SILENCES)
            active = typed(read, lambda each: self._silence(each) if each.state == "active" else None)
            self._silences = Partial(active[:MAX_SILENCES], active.gaps)
            self._read_at = time.monotonic()
        return self._silences

    def _silence(self, silence: _Silence) -> Silence:
        return Silence(
            id=f"{self.name}:{silence.id}",
            matchers=tuple(Matcher(m.name, frozenset({m.value}), m.isEqual, m.isRegex) for m in silence.matchers),
            starts_at=silence.startsAt.astimezone(UTC),
            ends_at=silence.endsAt.astimezone(UTC),
            by=self.name,
            reason=" ".join(silence.comment.split())[:MAX_REASON],
            author=silence.createdBy,
        )


class AlertmanagerTool(ToolSection):
    """Alertmanager, which reports whether alerts fire and are silenced. `source` is the webhook of its alerts."""

    kind: Literal["alertmanager"]
    name: str = "Alertmanager"
    url: Url
    source: str = "alertmanager"
    token_env: EnvironmentName | None = None

    def open(self, host: Host) -> Tools:
        return Tools(
            monitors=(Alertmanager(self.name, open_http(self.name, self.url, self.token_env, host), self.source),)
        )


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
