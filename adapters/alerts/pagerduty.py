"""PagerDuty's webhooks, version 3: https://developer.pagerduty.com/docs/webhooks-overview"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AwareDatetime, Discriminator, Tag, WithJsonSchema

from adapters.alerts import fields
from adapters.alerts.fields import AlertEvent, Format, Payload, State, Words
from core.model.alert import AlertEnd, AlertStatus, EndReason
from core.model.errors import MalformedInput

SIGNATURES = "X-PagerDuty-Signature"

ENDS = {"incident.resolved": EndReason.CURED, "merge_resolve_reason": EndReason.MERGED}
"""Ends by the type of the reason, or of the event if it has none."""

STATUSES: dict[str, State] = {
    "incident.triggered": AlertStatus.FIRING,
    "incident.reopened": AlertStatus.FIRING,
    "incident.acknowledged": AlertStatus.FIRING,
    "incident.unacknowledged": AlertStatus.FIRING,
    "incident.resolved": AlertEnd(word="incident.resolved"),
    "incident.delegated": AlertStatus.UPDATED,
    "incident.escalated": AlertStatus.UPDATED,
    "incident.priority_updated": AlertStatus.UPDATED,
    "incident.reassigned": AlertStatus.UPDATED,
    "incident.service_updated": AlertStatus.UPDATED,
}
"""Alert states by the type of an event about an incident. Other types do not change the state, if they have one."""


class _Reference(Payload):
    summary: Words = ""
    html_url: Words = ""


class _Reason(Payload):
    type: Words = ""
    incident: _Reference = _Reference()


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
    resolve_reason: _Reason | None = None
    body: _Body | None = None


class _Other(Payload):
    type: Annotated[Words, WithJsonSchema({"not": {"const": "incident"}})] = ""


def _kind(data: object) -> str:
    """Return the tag of an event's subject: an invalid incident must not pass as something else."""
    return "incident" if isinstance(data, dict) and data.get("type") == "incident" else "other"


class _Event(Payload):
    id: str
    event_type: str
    occurred_at: AwareDatetime
    agent: _Reference | None = None
    data: Annotated[Annotated[_Incident, Tag("incident")] | Annotated[_Other, Tag("other")], Discriminator(_kind)]


class _Webhook(Payload):
    event: _Event


def _is_signed(headers: Mapping[str, str], body: bytes, secret: str) -> bool:
    """Return whether one of the signatures is valid; there are several during a rotation of the secret."""
    given = (each.strip().partition("=") for each in headers.get(SIGNATURES, "").split(","))
    return any(fields.matches(value, body, secret) for version, _, value in given if version == "v1")


def _understood(webhook: _Webhook) -> AlertEvent | None:
    event, incident = webhook.event, webhook.event.data
    if isinstance(incident, _Other):
        if event.event_type in STATUSES:
            raise MalformedInput(f"The PagerDuty webhook has no incident for {event.event_type}; send it unchanged.")
        return None
    service = incident.service.summary if incident.service else ""
    priority = incident.priority.summary if incident.priority else ""
    team = incident.teams[0].summary if incident.teams else ""
    status, reason = STATUSES.get(event.event_type, AlertStatus.UPDATED), incident.resolve_reason
    if isinstance(status, AlertEnd) and reason is not None and reason.type:
        status = AlertEnd(word=reason.type, into=reason.incident.summary, url=reason.incident.html_url)
    is_answer = event.event_type in {"incident.acknowledged", "incident.unacknowledged"}
    return AlertEvent(
        group=incident.id,
        event_id=event.id,
        title=incident.title,
        status=status,
        severity=[priority, incident.urgency],
        labels={"service": service, "team": team, "priority": priority, "urgency": incident.urgency},
        service=service,
        url=incident.html_url,
        runbook=_runbook(incident),
        began=incident.created_at or event.occurred_at,
        as_of=event.occurred_at,
        by=(event.agent.summary if event.agent else "") if is_answer else None,
        withdrawn=event.event_type == "incident.unacknowledged",
    )


def _runbook(incident: _Incident) -> str:
    details = incident.body.details if incident.body is not None else ""
    if isinstance(details, str):
        return fields.runbook(prose=details)
    return fields.runbook({name: value for name, value in details.items() if isinstance(value, str)})


FORMAT = Format(
    "pagerduty", "PagerDuty", "send a version 3 webhook subscription", _Webhook, ENDS, _understood, _is_signed
)
