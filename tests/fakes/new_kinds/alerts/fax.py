"""A webhook that somebody adds: alarms that a fax machine sends, as JSON."""

from __future__ import annotations

from adapters.alerts.fields import AlertEvent, Format, Payload, Words, matches
from core.model.alert import AlertStatus


class _Sheet(Payload):
    number: Words
    title: Words
    over: bool = False


def _understood(sheet: _Sheet) -> AlertEvent:
    status = AlertStatus.RESOLVED if sheet.over else AlertStatus.FIRING
    return AlertEvent(group=sheet.number, title=sheet.title, status=status, severity=["page"], labels={})


FORMAT = Format(
    "fax",
    "Fax",
    "send one sheet",
    _Sheet,
    _understood,
    lambda headers, body, secret: matches(headers.get("X-Fax-Signature", ""), body, secret),
)
