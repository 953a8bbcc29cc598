"""Sentry's integration platform: https://docs.sentry.io/integrations/integration-platform/webhooks/

Supports issue alerts, metric alerts and issues. An issue and the alerts about it form one group.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import AwareDatetime

from adapters.alerts import fields
from adapters.alerts.fields import AlertEvent, Format, Payload, State, Words
from core.model.alert import AlertEnd, AlertStatus, EndReason
from core.model.errors import MalformedInput

SIGNATURE = "Sentry-Hook-Signature"

WITHOUT_EVENTS = "resolved after a time without events"
BY_RULE_CHANGE = "resolved by a change of the rule"
ENDS = {
    "resolved": EndReason.CURED,
    WITHOUT_EVENTS: EndReason.EXPIRED,
    BY_RULE_CHANGE: EndReason.RULE_CHANGED,
    "archived": EndReason.ARCHIVED,
    "ignored": EndReason.IGNORED,
    "deleted": EndReason.DELETED,
    "merged": EndReason.MERGED,
}
"""Ends by the action; of a resolution, also by what resolved it."""

RULE_UPDATED = "2"  # the method that gave a metric alert its status
ISSUE_ACTIONS: dict[str, State] = {
    "created": AlertStatus.FIRING,
    "triggered": AlertStatus.FIRING,  # by activity
    "unresolved": AlertStatus.FIRING,
    "assigned": AlertStatus.UPDATED,
    **{action: AlertEnd(word=action) for action in ENDS},
}
METRIC_ACTIONS: dict[str, State] = {
    "critical": AlertStatus.FIRING,
    "warning": AlertStatus.FIRING,
    "resolved": AlertEnd(word="resolved"),
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
    statusDetails: dict[str, Any] | None = None


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
    status_method: Words = ""
    projects: list[Words] | None = None


class _Data(Payload):
    issue: _Issue | None = None
    event: _Event | None = None
    triggered_rule: Words = ""
    metric_alert: _MetricAlert | None = None
    description_text: Words = ""
    web_url: Words = ""
    installation: Any = None
    comment: Any = None
    error: Any = None

    @property
    def is_other(self) -> bool:
        return any(each is not None for each in (self.installation, self.comment, self.error))


class _Webhook(Payload):
    action: str
    actor: _Named | None = None
    data: _Data


def _is_signed(headers: Mapping[str, str], body: bytes, secret: str) -> bool:
    return fields.matches(headers.get(SIGNATURE, ""), body, secret)


def _understood(webhook: _Webhook) -> AlertEvent | None:
    """Return the alert; None for anything else: an installation, a comment, a single error."""
    data = webhook.data
    if data.metric_alert is not None and webhook.action in METRIC_ACTIONS:
        rule, projects = data.metric_alert.alert_rule, data.metric_alert.projects or []
        is_changed = webhook.action == "resolved" and data.metric_alert.status_method == RULE_UPDATED
        return _event(
            f"rule:{fields.identity(rule.id)}",
            rule.name,
            AlertEnd(word=BY_RULE_CHANGE) if is_changed else METRIC_ACTIONS[webhook.action],
            {"project": projects[0] if projects else "", "environment": rule.environment, "query": rule.query},
            severity=[webhook.action] if webhook.action != "resolved" else [],
            description=data.description_text,
            url=data.web_url,
            began=data.metric_alert.date_started,
        )
    if data.issue is not None and data.metric_alert is None:
        issue = data.issue
        is_expired = webhook.action == "resolved" and bool((issue.statusDetails or {}).get("autoResolved"))
        people = (issue.assignedTo, webhook.actor)
        assigned = next((each.name or each.email for each in people if each and (each.name or each.email)), "")
        return _event(
            f"issue:{fields.identity(issue.id)}",
            issue.title,
            AlertEnd(word=WITHOUT_EVENTS) if is_expired else ISSUE_ACTIONS.get(webhook.action, AlertStatus.UPDATED),
            {"project": issue.project.slug if issue.project else "", "level": issue.level},
            severity=[issue.level, issue.priority],
            description=issue.culprit,
            url=issue.web_url or issue.permalink,
            began=issue.firstSeen,
            by=assigned if webhook.action == "assigned" else None,
        )
    if data.event is not None and webhook.action == "triggered":
        event, project = data.event, PROJECT.search(data.event.url)
        named = {"project": project["slug"] if project else "", "level": event.level, "rule": data.triggered_rule}
        return _event(
            f"issue:{fields.identity(event.issue_id)}",
            event.title,
            AlertStatus.FIRING,
            dict(event.tags or ()) | named,
            severity=[event.level],
            description=event.culprit,
            url=event.web_url,
            began=event.datetime,
        )
    is_due = webhook.action in ISSUE_ACTIONS or webhook.action in METRIC_ACTIONS
    if data.event or data.metric_alert or (is_due and not data.is_other):
        raise MalformedInput(f"The Sentry webhook has no alert for {webhook.action[:60]!r}; send it unchanged.")
    return None


def _event(group: str, title: str, status: State, labels: Mapping[str, str], **rest: Any) -> AlertEvent:
    """Return an event with a unique body, which contains a time or an id. Sentry's project is used as the service."""
    service = fields.first(labels, ("service", "project"))
    return AlertEvent(group=group, title=title, status=status, labels=labels, is_unique=True, service=service, **rest)


FORMAT = Format(
    "sentry", "Sentry", "send the webhooks of an internal integration", _Webhook, ENDS, _understood, _is_signed
)
