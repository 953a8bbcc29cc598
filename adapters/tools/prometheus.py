"""Prometheus, HTTP API: https://prometheus.io/docs/prometheus/latest/querying/api/ (range queries, rules)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Literal

from pydantic import AliasPath, BaseModel, Field, TypeAdapter

from adapters.http import Http
from core.model.errors import ToolUnavailable
from core.model.incident import AlertStatus, Gap, GapReason, Incident
from core.model.silences import Silence
from core.ports import Partial, Series, TimeWindow

SERVICE_LABELS = ("service", "job", "app")  # labels that may name a series' service
NOT_SHOWN = frozenset(
    {"__name__", "service", "job", "app", "instance", "pod", "namespace", "node", "container", "endpoint"}
)
"""Labels that do not distinguish metrics: series that differ only in them are added (counters) or averaged (gauges)."""

HIDDEN_METRICS = r"ALERTS|ALERTS_FOR_STATE|scrape_.+|.+_bucket|.+_created|go_.+|python_gc_.+|promhttp_.+"
"""Left out by the server: alerts' own series, histogram buckets, and what every process exports about itself."""

COUNTER_SUFFIXES = ("_total", "_count", "_sum")  # OpenMetrics: these only grow
MIN_STEP = 15.0  # seconds between points
MAX_POINTS = 240  # per series
MAX_SERIES = 500  # raw series of one service; more are refused
MAX_SERVICE = 128  # characters of a service's name


class _Row(BaseModel):
    metric: dict[str, str]
    values: list[tuple[float, str]] = []
    histograms: list[object] = []  # of native histograms, instead of or besides values


class _Answer(BaseModel):
    status: Literal["success"]
    kind: Literal["matrix"] = Field(validation_alias=AliasPath("data", "resultType"))
    rows: list[_Row] = Field(validation_alias=AliasPath("data", "result"))


class _Active(BaseModel):
    labels: dict[str, str]
    state: str


class _Rule(BaseModel):
    name: str
    type: str = "alerting"
    alerts: list[_Active] = []


class _Group(BaseModel):
    rules: list[_Rule]


class _Rules(BaseModel):
    groups: list[_Group] = Field(validation_alias=AliasPath("data", "groups"))


_ANSWER = TypeAdapter(_Answer)
_RULES = TypeAdapter(_Rules)


@dataclass(frozen=True, slots=True)
class Prometheus:
    """MetricReader and AlertMonitor over Prometheus or a compatible server.

    A counter is returned as its rate per second.
    """

    name: str
    http: Http

    async def check(self) -> None:
        """Raise ToolUnavailable unless Prometheus reports that it is ready."""
        await self.http.text("-/ready")

    async def series(self, service: str, window: TimeWindow) -> list[Series]:
        if not 0 < len(service) <= MAX_SERVICE:
            return []
        step = max(MIN_STEP, (window.end - window.start).total_seconds() / MAX_POINTS)
        asked = {
            "query": _selector(service),
            "start": str(window.start.timestamp()),
            "end": str(window.end.timestamp()),
            "step": str(step),
            "timeout": f"{self.http.timeout:.0f}s",
        }
        rows = (await self.http.parsed("api/v1/query_range", _ANSWER, form=asked)).rows
        if len(rows) > MAX_SERIES:
            raise ToolUnavailable(f"{self.http.system} has more than {MAX_SERIES} series for one service.")
        gaps = [
            Gap(self.name, GapReason.FAILED, f"native histogram {name} is not supported")
            for name in sorted({row.metric.get("__name__", "") for row in rows if row.histograms})
        ]
        return Partial(_series(service, rows, window), gaps)

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
        return any(active.labels.items() <= alert.labels.items() for active in firing for alert in mine)

    async def silences(self) -> list[Silence]:
        return []


def _selector(service: str) -> str:
    """Return the only query that is used. The service's name is quoted, so it cannot change the query."""
    quoted = service.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return " or ".join(f'{{{label}="{quoted}",__name__!~"{HIDDEN_METRICS}"}}' for label in SERVICE_LABELS)


def _series(service: str, rows: Iterable[_Row], window: TimeWindow) -> list[Series]:
    groups: defaultdict[tuple[str, bool], list[dict[float, float]]] = defaultdict(list)
    for row in rows:
        is_counter = row.metric.get("__name__", "").endswith(COUNTER_SUFFIXES)
        points = {at: float(value) for at, value in row.values if at < window.end.timestamp()}
        groups[_shown(row.metric, is_counter=is_counter), is_counter].append(_rate(points) if is_counter else points)
    return [
        _combined(service, metric, group, is_sum=is_counter)
        for (metric, is_counter), group in sorted(groups.items())
        if any(group)
    ]


def _shown(metric: Mapping[str, str], *, is_counter: bool) -> str:
    name = metric.get("__name__", "") + ("/s" if is_counter else "")
    labels = ", ".join(f"{label}={value}" for label, value in sorted(metric.items()) if label not in NOT_SHOWN)
    return f"{name}{{{labels}}}" if labels else name


def _rate(points: Mapping[float, float]) -> dict[float, float]:
    """Return the growth per second up to each point. After a restart, a counter starts at zero."""
    ordered = sorted(points.items())
    return {
        at: (value - before if value >= before else value) / (at - earlier)
        for (earlier, before), (at, value) in pairwise(ordered)
        if math.isfinite(before) and math.isfinite(value)
    }


def _combined(service: str, metric: str, group: Sequence[Mapping[float, float]], *, is_sum: bool) -> Series:
    times = sorted({at for points in group for at in points})
    values = [_together([points[at] for points in group if at in points], is_sum=is_sum) for at in times]
    return Series(service, metric, tuple(datetime.fromtimestamp(at, UTC) for at in times), tuple(values))


def _together(values: Sequence[float], *, is_sum: bool) -> float:
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return math.nan
    return sum(finite) if is_sum else sum(finite) / len(finite)
