"""Bots that post alerts in channels of Slack."""

from __future__ import annotations

from typing import Any

ALERTS, OTHER = "C0ALERTS", "C0OTHER"  # the first is adopted


def bell(title: str, colour: str = "a30200", **fields: str) -> dict[str, Any]:
    """A message of a monitoring system of nobody\u2019s."""
    shown = [{"title": name, "value": value, "short": True} for name, value in fields.items()]
    return {"text": "", "attachments": [{"title": title, "color": colour, "fields": shown, "fallback": title}]}
