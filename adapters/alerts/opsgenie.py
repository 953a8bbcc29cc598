"""Outgoing webhooks of Opsgenie, and of Jira Service Management, which sends the same bodies.

https://support.atlassian.com/opsgenie/docs/opsgenie-edge-connector-alert-action-data/
https://support.atlassian.com/jira-service-management-cloud/docs/alert-action-data-for-jira-edge-connector/
"""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from adapters.alerts import fields
from adapters.alerts.fields import Payload, Words
from core.model.incident import Acknowledgement, Alert, AlertDelivery, AlertStatus

SOURCE = "opsgenie"
JIRA_SERVICE_MANAGEMENT = "jira_service_management"

STATUSES = {
    "Create": AlertStatus.FIRING,
    "Acknowledge": AlertStatus.FIRING,
    "UnAcknowledge": AlertStatus.FIRING,
    "Close": AlertStatus.RESOLVED,
    "Delete": AlertStatus.RESOLVED,
    "UpdatePriority": AlertStatus.UPDATED,
    "UpdateMessage": AlertStatus.UPDATED,
    "UpdateDescription": AlertStatus.UPDATED,
}
"""What actions say; all others, custom ones too, leave an alert as it is."""


class _Team(Payload):
    name: Words = ""


class _Alert(Payload):
    alertId: str = Field(min_length=1)
    alias: Words = ""
    message: Words = ""
    description: Words = ""
    username: Words = ""
    priority: Words = ""
    entity: Words = ""
    source: Words = ""
    tags: list[Words] | None = None
    teams: list[Words | _Team] | None = None
    details: dict[str, Words] | None = None
    createdAt: Words = ""
    updatedAt: Words = ""


class _Webhook(Payload):
    action: str
    alert: _Alert


BODY = _Webhook
"""The parts of a body that are read."""


def parse(body: bytes, received_at: datetime, source: str = SOURCE) -> AlertDelivery | None:
    """Return the delivery in a request body; None for an action that does not change the alert's state."""
    name = "Opsgenie" if source == SOURCE else "Jira Service Management"
    webhook = fields.read(_Webhook, body, name, "send the webhook integration's own payload")
    status = STATUSES.get(webhook.action)
    if status is None:
        return None
    # A recurring alert has the same alias and another id.
    group = fields.identity(webhook.alert.alias or webhook.alert.alertId)
    return AlertDelivery(
        key=f"{source}:{fields.digest(body)}",
        source=source,
        group_key=group,
        alerts=(_read(webhook, status, group, received_at),),
        received_at=received_at,
    )


def _read(webhook: _Webhook, status: AlertStatus, group: str, received_at: datetime) -> Alert:
    alert = webhook.alert
    as_of = fields.past(fields.epoch(alert.updatedAt), received_at)
    labels = _labels(alert)
    message = fields.text(alert.message, fields.MAX_SUMMARY_LENGTH)
    return Alert(
        fingerprint=group,
        name=message or "alert without a message",
        status=status,
        severity=fields.severity(alert.priority),
        starts_at=fields.past(fields.epoch(alert.createdAt), received_at) or received_at,
        service=fields.first(labels, (*fields.SERVICE_LABELS, "entity")),
        summary=message,
        description=fields.text(alert.description, fields.MAX_DESCRIPTION_LENGTH),
        labels=labels,
        runbook_url=fields.runbook(labels, said=alert.description),
        ends_at=(as_of or received_at) if status is AlertStatus.RESOLVED else None,
        acknowledged=_acknowledged(webhook, as_of or received_at),
        as_of=as_of,
    )


def _labels(alert: _Alert) -> dict[str, str]:
    team = next((each if isinstance(each, str) else each.name for each in alert.teams or ()), "")
    facts = {"priority": alert.priority, "entity": alert.entity, "source": alert.source, "team": team}
    return fields.labels((facts | fields.tags(alert.tags or ()) | (alert.details or {})).items())


def _acknowledged(webhook: _Webhook, at: datetime) -> Acknowledgement | None:
    if webhook.action not in {"Acknowledge", "UnAcknowledge"}:
        return None
    by = fields.text(webhook.alert.username, fields.MAX_NAME_LENGTH)
    return Acknowledgement(by, at, withdrawn=webhook.action == "UnAcknowledge")
