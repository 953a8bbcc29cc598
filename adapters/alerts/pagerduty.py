"""PagerDuty's webhooks, version 3: https://developer.pagerduty.com/docs/webhooks-overview"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import AwareDatetime

from adapters.alerts import fields
from adapters.alerts.fields import Payload, Words
from core.model.incident import Acknowledgement, Alert, AlertDelivery, AlertStatus

SOURCE = "pagerduty"
SIGNATURES = "X-PagerDuty-Signature"
REMEDY = "send a version 3 webhook subscription"

STATUSES = {
    "incident.triggered": AlertStatus.FIRING,
    "incident.reopened": AlertStatus.FIRING,
    "incident.acknowledged": AlertStatus.FIRING,
    "incident.unacknowledged": AlertStatus.FIRING,
    "incident.resolved": AlertStatus.RESOLVED,
}
"""What the types of events say; all others say that something else about an incident is new."""


class _Reference(Payload):
    summary: Words = ""


class _Body(Payload):
    details: dict[str, Any] | Words = ""


class _Incident(Payload):
    id: str
    title: Words = ""
    html_url: Words = ""
    created_at: AwareDatetime | None = None
    service: _Reference | None = None
    teams: list[_Reference] | None = None
    priority: _Reference | None = None
    urgency: Words = ""
    body: _Body | None = None


class _Data(Payload):
    type: Words = ""


class _Event(Payload):
    id: str
    event_type: str
    occurred_at: AwareDatetime
    agent: _Reference | None = None
    data: _Data


class _Webhook(Payload):
    event: _Event


class _IncidentEvent(Payload):
    data: _Incident


class _IncidentWebhook(Payload):
    event: _IncidentEvent


def is_signed(headers: Mapping[str, str], body: bytes, secret: str) -> bool:
    """Return whether one of the signatures is valid; there are several during a rotation of the secret."""
    given = (each.strip().partition("=") for each in headers.get(SIGNATURES, "").split(","))
    return any(fields.matches(value, body, secret) for version, _, value in given if version == "v1")


BODY = _IncidentWebhook
"""The parts of a body that are read."""


def parse(body: bytes, received_at: datetime) -> AlertDelivery | None:
    """Return the delivery in a request body; None for a test, and for events that are not about an incident's state."""
    event = fields.read(_Webhook, body, "PagerDuty", REMEDY).event
    if event.data.type != "incident":
        return None
    incident = fields.read(_IncidentWebhook, body, "PagerDuty", REMEDY).event.data
    return AlertDelivery(
        key=f"{SOURCE}:{fields.identity(event.id)}",
        source=SOURCE,
        group_key=fields.identity(incident.id),
        alerts=(_alert(event, incident, received_at),),
        received_at=received_at,
        one_event=True,
    )


def _alert(event: _Event, incident: _Incident, received_at: datetime) -> Alert:
    occurred_at = fields.past(event.occurred_at, received_at) or received_at
    status = STATUSES.get(event.event_type, AlertStatus.UPDATED)
    service = fields.text(incident.service.summary if incident.service else "", fields.MAX_VALUE_LENGTH)
    priority = incident.priority.summary if incident.priority else ""
    team = incident.teams[0].summary if incident.teams else ""
    facts = {"service": service, "team": team, "priority": priority, "urgency": incident.urgency}
    title = fields.text(incident.title, fields.MAX_SUMMARY_LENGTH)
    return Alert(
        fingerprint=fields.identity(incident.id),
        name=title or "incident without a title",
        status=status,
        severity=fields.severity(priority, incident.urgency),
        starts_at=fields.past(incident.created_at, received_at) or occurred_at,
        service=service,
        summary=title,
        labels=fields.labels(facts.items()),
        ends_at=occurred_at if status is AlertStatus.RESOLVED else None,
        url=fields.web_address(incident.html_url),
        runbook_url=_runbook(incident),
        acknowledged=_acknowledged(event, occurred_at),
        as_of=occurred_at,
    )


def _runbook(incident: _Incident) -> str:
    details = incident.body.details if incident.body is not None else ""
    if isinstance(details, str):
        return fields.runbook(said=details)
    return fields.runbook({name: value for name, value in details.items() if isinstance(value, str)})


def _acknowledged(event: _Event, at: datetime) -> Acknowledgement | None:
    if event.event_type not in {"incident.acknowledged", "incident.unacknowledged"}:
        return None
    by = fields.text(event.agent.summary if event.agent else "", fields.MAX_NAME_LENGTH)
    return Acknowledgement(by, at, withdrawn=event.event_type == "incident.unacknowledged")
