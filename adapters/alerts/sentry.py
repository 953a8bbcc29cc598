"""Sentry's integration platform: https://docs.sentry.io/integrations/integration-platform/webhooks/

Supports issue alerts, metric alerts and issues. An issue and the alerts about it form one group.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import AwareDatetime

from adapters.alerts import fields
from adapters.alerts.fields import Payload, Words
from core.model.incident import Acknowledgement, Alert, AlertDelivery, AlertStatus

SOURCE = "sentry"
SIGNATURE = "Sentry-Hook-Signature"
REMEDY = "send the webhooks of an internal integration"

ISSUE_ACTIONS = {
    "created": AlertStatus.FIRING,
    "unresolved": AlertStatus.FIRING,
    "assigned": AlertStatus.UPDATED,
    "resolved": AlertStatus.RESOLVED,
    "archived": AlertStatus.RESOLVED,
    "ignored": AlertStatus.RESOLVED,  # the former name of "archived"
}
METRIC_ACTIONS = {
    "critical": AlertStatus.FIRING,
    "warning": AlertStatus.FIRING,
    "resolved": AlertStatus.RESOLVED,
}

PROJECT = re.compile(r"/projects/[^/]{1,100}/(?P<slug>[^/]{1,100})/")  # in the address of an event


class _Named(Payload):
    name: Words = ""
    slug: Words = ""
    email: Words = ""


class _Issue(Payload):
    id: str
    title: Words = ""
    culprit: Words = ""
    level: Words = ""
    priority: Words = ""
    project: _Named | None = None
    assignedTo: _Named | None = None
    web_url: Words = ""
    permalink: Words = ""
    firstSeen: AwareDatetime | None = None


class _Event(Payload):
    issue_id: str
    title: Words = ""
    culprit: Words = ""
    level: Words = ""
    datetime: AwareDatetime | None = None
    url: Words = ""
    web_url: Words = ""
    tags: list[tuple[Words, Words]] | None = None


class _Rule(Payload):
    id: str
    name: Words = ""
    query: Words = ""
    environment: Words = ""


class _MetricAlert(Payload):
    alert_rule: _Rule
    date_started: AwareDatetime | None = None
    projects: list[Words] | None = None


class _Data(Payload):
    issue: _Issue | None = None
    event: _Event | None = None
    triggered_rule: Words = ""
    metric_alert: _MetricAlert | None = None
    description_text: Words = ""
    web_url: Words = ""


class _Webhook(Payload):
    action: str
    actor: _Named | None = None
    data: _Data


def is_signed(headers: Mapping[str, str], body: bytes, secret: str) -> bool:
    return fields.matches(headers.get(SIGNATURE, ""), body, secret)


BODY = _Webhook
"""The parts of a body that are read."""


def parse(body: bytes, received_at: datetime) -> AlertDelivery | None:
    """Return the delivery in a request body; None for anything but an alert: an installation, a comment, a single
    error.
    """
    webhook = fields.read(_Webhook, body, "Sentry", REMEDY)
    group, alert = _read(webhook, received_at)
    if alert is None:
        return None
    return AlertDelivery(
        key=f"{SOURCE}:{fields.digest(body)}",
        source=SOURCE,
        group_key=group,
        alerts=(alert,),
        received_at=received_at,
        one_event=True,  # a body contains the time or id of its event, so no two events have equal bodies
    )


def _read(webhook: _Webhook, received_at: datetime) -> tuple[str, Alert | None]:
    data = webhook.data
    if data.metric_alert is not None and webhook.action in METRIC_ACTIONS:
        group = f"rule:{fields.identity(data.metric_alert.alert_rule.id)}"
        return group, _metric_alert(webhook, data.metric_alert, group, received_at)
    if data.issue is not None and webhook.action in ISSUE_ACTIONS:
        group = f"issue:{fields.identity(data.issue.id)}"
        return group, _issue(webhook, data.issue, group, received_at)
    if data.event is not None and webhook.action == "triggered":
        group = f"issue:{fields.identity(data.event.issue_id)}"
        return group, _issue_alert(data, data.event, group, received_at)
    return "", None


def _metric_alert(webhook: _Webhook, alert: _MetricAlert, group: str, received_at: datetime) -> Alert:
    rule, projects = alert.alert_rule, alert.projects or []
    labels = {"project": projects[0] if projects else "", "environment": rule.environment, "query": rule.query}
    return _alert(
        group,
        rule.name,
        METRIC_ACTIONS[webhook.action],
        labels,
        received_at,
        severity=fields.severity(webhook.action),
        description=fields.text(webhook.data.description_text, fields.MAX_DESCRIPTION_LENGTH),
        url=fields.web_address(webhook.data.web_url),
        starts_at=fields.past(alert.date_started, received_at) or received_at,
    )


def _issue(webhook: _Webhook, issue: _Issue, group: str, received_at: datetime) -> Alert:
    acknowledged = None
    if webhook.action == "assigned":
        people = (issue.assignedTo, webhook.actor)
        by = next((each.name or each.email for each in people if each and (each.name or each.email)), "")
        acknowledged = Acknowledgement(fields.text(by, fields.MAX_NAME_LENGTH), received_at)
    labels = {"project": issue.project.slug if issue.project else "", "level": issue.level}
    return _alert(
        group,
        issue.title,
        ISSUE_ACTIONS[webhook.action],
        labels,
        received_at,
        severity=fields.severity(issue.level, issue.priority),
        description=fields.text(issue.culprit, fields.MAX_DESCRIPTION_LENGTH),
        url=fields.web_address(issue.web_url or issue.permalink),
        starts_at=fields.past(issue.firstSeen, received_at) or received_at,
        acknowledged=acknowledged,
    )


def _issue_alert(data: _Data, event: _Event, group: str, received_at: datetime) -> Alert:
    project = PROJECT.search(event.url)
    labels = dict(event.tags or ()) | {
        "project": project["slug"] if project else "",
        "level": event.level,
        "rule": data.triggered_rule,
    }
    return _alert(
        group,
        event.title,
        AlertStatus.FIRING,
        labels,
        received_at,
        severity=fields.severity(event.level),
        description=fields.text(event.culprit, fields.MAX_DESCRIPTION_LENGTH),
        url=fields.web_address(event.web_url),
        starts_at=fields.past(event.datetime, received_at) or received_at,
    )


def _alert(
    group: str, title: str, status: AlertStatus, labels: Mapping[str, str], received_at: datetime, **rest: Any
) -> Alert:
    """Return the only alert of a group. Sentry's project is used as the service."""
    kept = fields.labels(labels.items())
    summary = fields.text(title, fields.MAX_SUMMARY_LENGTH)
    return Alert(
        fingerprint=group,
        name=summary or "issue without a title",
        status=status,
        service=fields.first(kept, ("service", "project")),
        summary=summary,
        labels=kept,
        runbook_url=fields.runbook(kept),
        ends_at=received_at if status is AlertStatus.RESOLVED else None,
        **rest,
    )
