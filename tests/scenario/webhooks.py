"""What Alertmanager sends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

NOT_YET = "0001-01-01T00:00:00Z"


def alert(fingerprint: str = "a1", *, service: str = "till", resolved: bool = False, **labels: str) -> dict[str, Any]:
    """An alert that began four minutes ago."""
    now = datetime.now(UTC)
    return {
        "status": "resolved" if resolved else "firing",
        "labels": {"alertname": "LatencyHigh", "service": service, "severity": "critical", **labels},
        "annotations": {"summary": f"{service} p99 latency above 2 s", "description": "Charges wait for a connection."},
        "startsAt": (now - timedelta(minutes=4)).isoformat(),
        "endsAt": now.isoformat() if resolved else NOT_YET,
        "generatorURL": "http://prometheus.example/graph",
        "fingerprint": fingerprint,
    }


def delivery(group: str, *alerts: dict[str, Any], omitted: int = 0) -> dict[str, Any]:
    """One request about a group of alerts."""
    firing = any(each["status"] == "firing" for each in alerts)
    return {
        "version": "4",
        "groupKey": group,
        "truncatedAlerts": omitted,
        "status": "firing" if firing else "resolved",
        "receiver": "plumbline",
        "groupLabels": {},
        "commonLabels": {},
        "commonAnnotations": {},
        "externalURL": "http://alertmanager.example",
        "alerts": list(alerts),
    }
