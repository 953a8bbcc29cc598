"""Outgoing webhooks of Opsgenie, and of Jira Service Management, which sends the same bodies.

https://support.atlassian.com/opsgenie/docs/opsgenie-edge-connector-alert-action-data/
https://support.atlassian.com/jira-service-management-cloud/docs/alert-action-data-for-jira-edge-connector/
"""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from adapters.alerts import fields
from adapters.alerts.fields import AlertEvent, Format, Payload, State, Words
from core.model.alert import AlertEnd, AlertStatus, EndReason

ENDS = {"Close": EndReason.CURED, "Delete": EndReason.DELETED}
STATUSES: dict[str, State] = {
    "Create": AlertStatus.FIRING,
    "Acknowledge": AlertStatus.FIRING,
    "UnAcknowledge": AlertStatus.FIRING,
    **{action: AlertEnd(word=action) for action in ENDS},
}
"""Alert states by action. All other actions, including custom ones, do not change the state."""


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


def _understood(webhook: _Webhook) -> AlertEvent:
    alert = webhook.alert
    team = next((each if isinstance(each, str) else each.name for each in alert.teams or ()), "")
    facts = {"priority": alert.priority, "entity": alert.entity, "source": alert.source, "team": team}
    return AlertEvent(
        group=alert.alias or alert.alertId,  # a recurring alert has the same alias and another id
        title=alert.message,
        status=STATUSES.get(webhook.action, AlertStatus.UPDATED),
        severity=[alert.priority],
        labels=facts | fields.tags(alert.tags or ()) | (alert.details or {}),
        services=["entity"],
        description=alert.description,
        began=fields.epoch(alert.createdAt),
        as_of=fields.epoch(alert.updatedAt),
        by=alert.username if webhook.action in {"Acknowledge", "UnAcknowledge"} else None,
        withdrawn=webhook.action == "UnAcknowledge",
    )


FORMAT = Format("opsgenie", "Opsgenie", "send the webhook integration's own payload", _Webhook, ENDS, _understood)
JIRA_SERVICE_MANAGEMENT = replace(FORMAT, source="jira_service_management", name="Jira Service Management")
