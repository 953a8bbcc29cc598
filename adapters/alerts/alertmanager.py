"""Alertmanager's webhook, version 4: https://prometheus.io/docs/alerting/latest/configuration/#webhook_config"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, Field, ValidationError

from core.errors import MalformedInput
from core.incident import MAX_KEPT_ALERTS, Alert, AlertDelivery, AlertStatus, Severity

SOURCE = "alertmanager"

SERVICE_LABELS = (
    "service",
    "app_kubernetes_io_name",
    "app",
    "component",
    "deployment",
    "statefulset",
    "daemonset",
    "job",
)
"""The labels that may name an alert's service: the first one that is set is taken."""

SEVERITY_LABELS = ("severity", "priority", "level")
SEVERITIES = {
    Severity.CRITICAL: "critical crit page error high fatal emergency disaster major urgent p0 p1 sev0 sev1",
    Severity.WARNING: "warning warn medium average moderate minor ticket p2 p3 sev2 sev3",
    Severity.INFO: "info information informational low notice none debug p4 p5 sev4 sev5",
}
SEVERITY_OF = {word: severity for severity, words in SEVERITIES.items() for word in words.split()}

MAX_LABELS = 64  # labels kept of one alert
MAX_NAME_LENGTH = 128  # characters kept of a label's name
MAX_VALUE_LENGTH = 512  # characters kept of a label's value
MAX_SUMMARY_LENGTH = 500  # characters
MAX_DESCRIPTION_LENGTH = 4_000  # characters
MAX_URL_LENGTH = 2_000  # characters
MAX_FINGERPRINT_LENGTH = 64  # characters
FIRST_REAL_YEAR = 1970  # Alertmanager writes 0001-01-01T00:00:00Z for "no time"


class _Alert(BaseModel):
    status: Literal["firing", "resolved"]
    labels: dict[str, str]
    annotations: dict[str, str] = {}
    startsAt: AwareDatetime
    endsAt: AwareDatetime | None = None
    generatorURL: str = ""
    fingerprint: str = ""

    @property
    def identity(self) -> str:
        """Alertmanager's fingerprint, or a digest of the labels from senders that leave it out."""
        return self.fingerprint[:MAX_FINGERPRINT_LENGTH] or _digest(*map("=".join, sorted(self.labels.items())))[:16]


class _Webhook(BaseModel):
    version: Literal["4"]
    groupKey: Annotated[str, Field(min_length=1)]
    alerts: Annotated[list[_Alert], Field(min_length=1)]
    truncatedAlerts: Annotated[int, Field(ge=0)] = 0


def parse(body: bytes, received_at: datetime) -> AlertDelivery:
    """The delivery that a request body holds. Raises MalformedInput when it is not a version 4 webhook.

    Of a request with very many alerts the earliest MAX_KEPT_ALERTS firing and as many resolved ones are kept, and the
    rest is counted in `omitted`; long labels and texts are cut. A start in the future or none at all becomes the time
    of the request.
    """
    try:
        webhook = _Webhook.model_validate_json(body)
    except ValidationError as error:
        raise MalformedInput(_complaint(error)) from None
    kept = _kept(webhook.alerts)
    return AlertDelivery(
        key=_key(webhook),
        source=SOURCE,
        group_key=_text(webhook.groupKey, MAX_DESCRIPTION_LENGTH),
        alerts=tuple(_alert(alert, received_at) for alert in kept),
        received_at=received_at,
        omitted=len(webhook.alerts) - len(kept) + webhook.truncatedAlerts,
    )


def _complaint(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(map(str, first["loc"]))[:200]
    problem = first["msg"][:200].rstrip(".")
    return f"The Alertmanager webhook is not valid{f' at {where}' if where else ''}: {problem}; send payload version 4."


def _kept(alerts: Sequence[_Alert]) -> list[_Alert]:
    """The earliest of either state: those of a later request about the same group are then the same ones."""
    ordered = sorted(alerts, key=lambda alert: (alert.startsAt, alert.identity))
    firing = [alert for alert in ordered if alert.status == "firing"][:MAX_KEPT_ALERTS]
    resolved = [alert for alert in ordered if alert.status == "resolved"][:MAX_KEPT_ALERTS]
    return firing + resolved


def _key(webhook: _Webhook) -> str:
    """Equal for two requests exactly when they say the same about the same alerts."""
    states = sorted(f"{alert.identity} {alert.status} {alert.startsAt.isoformat()}" for alert in webhook.alerts)
    return f"{SOURCE}:{_digest(webhook.groupKey, *states)}"


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\x00".join(parts).encode(), digest_size=16).hexdigest()


def _alert(alert: _Alert, received_at: datetime) -> Alert:
    labels = {
        _text(name, MAX_NAME_LENGTH): _text(value, MAX_VALUE_LENGTH)
        for name, value in sorted(alert.labels.items())[:MAX_LABELS]
    }
    annotations = alert.annotations
    status = AlertStatus(alert.status)
    starts_at = _time(alert.startsAt, received_at) or received_at
    ends_at = _time(alert.endsAt, received_at) if status is AlertStatus.RESOLVED else None
    return Alert(
        fingerprint=alert.identity,
        name=labels.get("alertname", "alert without a name"),
        status=status,
        severity=_severity(labels),
        starts_at=starts_at,
        service=_first(labels, SERVICE_LABELS),
        summary=_text(_first(annotations, ("summary", "title", "message")), MAX_SUMMARY_LENGTH),
        description=_text(_first(annotations, ("description", "message")), MAX_DESCRIPTION_LENGTH),
        labels=labels,
        ends_at=ends_at,
        url=_url(alert.generatorURL),
    )


def _severity(labels: Mapping[str, str]) -> Severity:
    """WARNING where no label says anything that is known."""
    return SEVERITY_OF.get(_first(labels, SEVERITY_LABELS).strip().lower(), Severity.WARNING)


def _first(texts: Mapping[str, str], names: Sequence[str]) -> str:
    return next((texts[name] for name in names if texts.get(name)), "")


def _text(text: str, limit: int) -> str:
    """Cut to `limit`, and without NUL, which databases refuse."""
    cleaned = text.replace("\x00", "")
    return cleaned if len(cleaned) <= limit else cleaned[: limit - 1] + "…"


def _url(text: str) -> str:
    return text if text.startswith(("http://", "https://")) and len(text) <= MAX_URL_LENGTH else ""


def _time(at: datetime | None, received_at: datetime) -> datetime | None:
    """In UTC and not in the future; None for Alertmanager's "no time"."""
    if at is None or at.year < FIRST_REAL_YEAR:
        return None
    return min(at.astimezone(UTC), received_at)
