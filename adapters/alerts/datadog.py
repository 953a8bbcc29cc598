"""Datadog's webhooks: https://docs.datadoghq.com/integrations/webhooks/

The content of a request is configured by its sender. Supported are Datadog's default payload, whose title tells whether
a monitor triggered or recovered, and fields named after the variables: `"alert_id": "$ALERT_ID"`.
"""

from __future__ import annotations

import re
from datetime import datetime

from adapters.alerts import fields
from adapters.alerts.fields import Payload, Words
from core.model.errors import MalformedInput
from core.model.incident import Alert, AlertDelivery, AlertStatus

SOURCE = "datadog"

STATUSES = {
    "recovered": AlertStatus.RESOLVED,
    "triggered": AlertStatus.FIRING,
    "re-triggered": AlertStatus.FIRING,
    "no data": AlertStatus.FIRING,
    "re-no data": AlertStatus.FIRING,
    "warn": AlertStatus.FIRING,
    "re-warn": AlertStatus.FIRING,
    "renotify": AlertStatus.FIRING,
}
"""What $ALERT_TRANSITION says, or the title in brackets."""

TITLE = re.compile(
    r"(?P<test>\[test\]\s*)?(\[(?P<priority>p[1-5])\]\s*)?"
    rf"(\[(?P<transition>{'|'.join(STATUSES)})(\s+on\s+\{{(?P<scope>[^{{}}\]]*)\}})?\]\s*)?(?P<name>.*)",
    re.IGNORECASE | re.DOTALL,
)


class _Webhook(Payload):
    id: Words = ""
    title: Words = ""
    body: Words = ""
    date: Words = ""
    last_updated: Words = ""
    alert_id: Words = ""
    alert_title: Words = ""
    alert_transition: Words = ""
    alert_type: Words = ""
    alert_priority: Words = ""
    alert_scope: Words = ""
    hostname: Words = ""
    tags: Words = ""
    link: Words = ""


BODY = _Webhook
"""The parts of a body that are read."""


def parse(body: bytes, received_at: datetime) -> AlertDelivery | None:
    """Return the delivery in a request body; None for the test of a monitor."""
    webhook = fields.read(_Webhook, body, "Datadog", "send Datadog's own payload or fields named after its variables")
    title = TITLE.fullmatch((webhook.title or webhook.alert_title)[: fields.MAX_SUMMARY_LENGTH])
    assert title is not None, "every part of it may be missing"
    if title["test"]:
        return None
    status = STATUSES.get(_said(webhook.alert_transition).lower() or (title["transition"] or "").lower())
    if status is None:
        raise MalformedInput(
            "The Datadog webhook does not say whether its monitor was triggered or has recovered: "
            'add "alert_transition": "$ALERT_TRANSITION" to its payload.'
        )
    group = fields.identity(_said(webhook.alert_id) or title["name"])
    return AlertDelivery(
        key=f"{SOURCE}:{fields.digest(body)}",
        source=SOURCE,
        group_key=group,
        alerts=(_alert(webhook, title, status, received_at),),
        received_at=received_at,
    )


def _alert(webhook: _Webhook, title: re.Match[str], status: AlertStatus, received_at: datetime) -> Alert:
    as_of = fields.past(fields.epoch(webhook.last_updated) or fields.epoch(webhook.date), received_at)
    scope = _said(webhook.alert_scope) or title["scope"] or _said(webhook.hostname)
    labels = fields.tags(f"{scope},{_said(webhook.tags)}".split(","))
    priority = _said(webhook.alert_priority) or title["priority"] or ""
    name = fields.text(title["name"], fields.MAX_SUMMARY_LENGTH)
    return Alert(
        # One monitor alerts for each host, or each group of its configuration.
        fingerprint=fields.digest(_said(webhook.alert_id) or name, scope),
        name=name or "monitor without a name",
        status=status,
        severity=fields.severity(priority, title["transition"] or "", _said(webhook.alert_type)),
        starts_at=fields.past(fields.epoch(webhook.date), received_at) or received_at,
        service=fields.first(labels, fields.SERVICE_LABELS),
        summary=name,
        description=fields.text(_said(webhook.body), fields.MAX_DESCRIPTION_LENGTH),
        labels=labels,
        ends_at=(as_of or received_at) if status is AlertStatus.RESOLVED else None,
        url=fields.web_address(webhook.link),
        runbook_url=fields.runbook(labels, said=_said(webhook.body)),
        as_of=as_of,
    )


def _said(value: str) -> str:
    """Return the value; empty if its variable has no meaning for the event."""
    return "" if value.lower() in {"null", "none"} or value.startswith("$") else value
