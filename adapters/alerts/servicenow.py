"""Incidents of ServiceNow, sent by a business rule; docs/webhooks.md has its script.

The fields and states are those of the incident table, whose life cycle this describes:
https://www.servicenow.com/docs/r/it-service-management/incident-management/c_IncidentManagementStateModel.html
A business rule does not sign; it sends the webhook's secret.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AwareDatetime, BeforeValidator, Field, WithJsonSchema

from adapters.alerts.fields import MAX_SUMMARY_LENGTH, AlertEvent, Format, Payload, Words, text
from core.model.alert import AlertEnd, AlertStatus, EndReason

NAMES = {"1": "new", "2": "in progress", "3": "on hold", "6": "resolved", "7": "closed", "8": "canceled"}
"""States by their values; a script may also send what is displayed."""

IN_PROGRESS = "in progress"
ONGOING = frozenset({"new", IN_PROGRESS, "on hold"})
SOLVED = frozenset({"resolved", "closed"})
SOLVED_BY = """
    solution provided, workaround provided, known error, user error, resolved by caller, resolved by change,
    resolved by problem, resolved by request, closed/resolved by caller, solved (permanently), solved (work around),
    solved remotely (permanently), solved remotely (work around)
    """
ENDS = {
    **dict.fromkeys((*SOLVED, *(" ".join(code.split()) for code in SOLVED_BY.split(","))), EndReason.CURED),
    "duplicate": EndReason.DUPLICATE,
    "canceled": EndReason.CANCELED,
    "cancelled": EndReason.CANCELED,
}
"""Ends by the resolution code, or by the state if it has none. Others (“Not Solved”) leave open whether it is over."""

PRIORITIES = {"1": "critical", "2": "high", "3": "moderate", "4": "low", "5": "planning"}


def _in_utc(value: object) -> object:
    """Return a time of GlideRecord, `2026-03-14 09:26:00` in UTC; any other value unchanged, None if it is empty."""
    try:
        return datetime.strptime(str(value), "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return value or None


Time = Annotated[
    AwareDatetime | None,
    BeforeValidator(_in_utc),
    WithJsonSchema({"type": ["string", "null"], "pattern": r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)?$"}, "validation"),
]


class _Record(Payload):
    sys_id: str = Field(min_length=1)
    number: Words = ""
    short_description: Words = ""
    description: Words = ""
    state: Annotated[Words, Field(min_length=1)]
    priority: Words = ""
    cmdb_ci: Words = ""
    business_service: Words = ""
    assignment_group: Words = ""
    assigned_to: Words = ""
    opened_at: Time = None
    sys_updated_on: Time = None
    close_code: Words = ""
    close_notes: Words = ""
    parent_incident: Words = ""
    link: Words = ""


def _understood(record: _Record) -> AlertEvent | None:
    state = NAMES.get(record.state, record.state.lower())
    code = " ".join(record.close_code.lower().split()) if state in SOLVED else ""
    going_on = AlertStatus.FIRING if state in ONGOING else AlertStatus.UPDATED
    fix = " ".join(text(record.close_notes, MAX_SUMMARY_LENGTH).split())
    labels = {
        "number": record.number,
        "priority": record.priority,
        "service": record.business_service or record.cmdb_ci,
        "configuration_item": record.cmdb_ci,
        "team": record.assignment_group,
    }
    return AlertEvent(
        group=record.sys_id,
        title=record.short_description,
        status=AlertEnd(word=code or state, into=record.parent_incident) if state in ENDS else going_on,
        severity=[PRIORITIES.get(record.priority, record.priority)],
        labels=labels,
        is_unique=True,
        description=record.description,
        url=record.link,
        note=f"fix: {fix}" if fix else "",
        began=record.opened_at,
        as_of=record.sys_updated_on,
        by=record.assigned_to if state == IN_PROGRESS and record.assigned_to else None,
    )


FORMAT = Format("servicenow", "ServiceNow", "send it with the script in docs/webhooks.md", _Record, ENDS, _understood)
