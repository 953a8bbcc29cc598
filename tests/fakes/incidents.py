"""Incidents of which nothing is known but what was said as they began."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from core.model.alert import Severity
from core.model.conversation import Place, Placement, Platform
from core.model.incident import Incident

BEGAN = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)


def bare_incident(title: str, **fields: Any) -> Incident:
    usual: dict[str, Any] = {
        "id": "I-1",
        "source": "alertmanager",
        "group_key": "g",
        "title": title,
        "severity": Severity.CRITICAL,
        "service": "",
        "labels": {},
        "alerts": (),
        "alert_count": 1,
        "delivery_count": 1,
        "started_at": BEGAN,
        "opened_at": BEGAN,
        "updated_at": BEGAN,
        "placement": Placement(Place(Platform.CONSOLE, "incidents")),
    }
    return Incident(**usual | fields)
