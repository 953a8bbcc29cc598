"""Made-up outages: ordinary traffic of some services, and signs of trouble laid over it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from core.model.findings import Gap, SimilarIncident
from core.model.incident import Incident
from core.ports import Change, LogLine, Series
from core.rca.observations import Observations
from tests.fakes.incidents import bare_incident

START = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)  # of the incident
LENGTH = 60  # minutes of logs and metrics before it
CALLS = {"shop": ("cart", "login"), "cart": ("stock",), "login": ("vault",), "edge": ("shop",)}


def minutes(count: float) -> datetime:
    """That many minutes after the start of the incident; negative before."""
    return START + timedelta(minutes=count)


def incident(service: str = "shop", title: str = "ShopLatencyHigh") -> Incident:
    return bare_incident(title, service=service, labels={"alertname": title, "service": service})


def traffic(service: str, per_minute: int = 20) -> list[LogLine]:
    """The same mix of messages in every minute, a few ordinary warnings among them."""
    lines: list[LogLine] = []
    first = minutes(-LENGTH)
    for second in range(0, LENGTH * 60, 60 // per_minute):
        at = first + timedelta(seconds=second)
        slow = second % 90 == 0
        text = (
            f"slow query took {200 + second % 37} ms" if slow else f"GET /items/{second} 200 in {10 + second % 13} ms"
        )
        lines.append(LogLine(service, at, "WARN" if slow else "INFO", text))
    return lines


def errors(service: str, text: str, since: float, per_minute: int = 12, level: str = "ERROR") -> list[LogLine]:
    """The same message over and over from `since` (minutes) up to the start of the incident."""
    count = int(-since * per_minute)
    return [
        LogLine(service, minutes(since + index / per_minute), level, f"{text} request={index}")
        for index in range(count)
    ]


def gauge(service: str, metric: str, value: Callable[[float], float]) -> Series:
    """One value per 30 s; `value` gets the minutes since the start of the incident, with a little ripple laid over it."""
    offsets = [-LENGTH + step / 2 for step in range(LENGTH * 2)]
    values = tuple(value(offset) * (1 + 0.02 * math.sin(offset * 7)) for offset in offsets)
    return Series(service, metric, tuple(map(minutes, offsets)), values)


def change(
    id_: str, service: str, before: float, title: str = "Update", kind: str = "deploy", detail: str = ""
) -> Change:
    return Change(id_, minutes(before), kind, service, "Asha", title, detail)


def observations(
    logs: Sequence[Sequence[LogLine]] = (),
    series: Sequence[Series] = (),
    changes: Sequence[Change] = (),
    *,
    of: Incident | None = None,
    similar: Sequence[SimilarIncident] = (),
    gaps: Sequence[Gap] = (),
    cut: Sequence[str] = (),
) -> Observations:
    return Observations(
        incident=of or incident(),
        until=START + timedelta(seconds=1),
        services=("shop", "cart", "login", "stock", "vault", "edge"),
        logs=tuple(line for lines in logs for line in lines),
        series=tuple(series),
        changes=tuple(changes),
        dependencies=CALLS,
        similar=tuple(similar),
        gaps=tuple(gaps),
        cut=frozenset(cut),
    )
