"""A webhook that somebody adds: alarms that a fax machine sends, as JSON."""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, Field

from adapters.alerts.fields import AlertEvent, Format, Payload, Words, matches
from core.model.alert import AlertEnd, AlertStatus, EndReason

ENDS = {"over": EndReason.CURED, "torn": EndReason.CANCELED}  # by the sender's words; any other is no cure
LOUDNESS = {"1": "info", "2": "warning", "3": "critical"}  # a number alone says nothing, so it gets a word


class _Sheet(Payload):
    number: Annotated[str, Field(min_length=1)]  # identifies the incident, so it may not be missing or empty
    title: Words = ""
    over: Words = ""  # how it ended
    machine: Words = ""
    loud: Words = ""
    since: AwareDatetime | None = None
    sent: AwareDatetime | None = None


def _understood(sheet: _Sheet) -> AlertEvent:
    return AlertEvent(
        group=sheet.number,
        title=sheet.title,
        status=AlertEnd(word=sheet.over) if sheet.over else AlertStatus.FIRING,
        severity=[LOUDNESS.get(sheet.loud, sheet.loud)],
        labels={},
        service=sheet.machine,
        began=sheet.since,
        as_of=sheet.sent,
    )


FORMAT = Format(
    "fax",
    "Fax",
    "send one sheet",
    _Sheet,
    ENDS,
    _understood,
    lambda headers, body, secret: matches(headers.get("X-Fax-Signature", ""), body, secret),
)
