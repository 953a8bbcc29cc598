"""Grafana Alerting's webhook contact point.

https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier/
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from adapters.alerts import fields
from adapters.alerts.alertmanager import Webhook, group_delivery
from core.model.incident import AlertDelivery

SOURCE = "grafana"
SIGNATURE = "X-Grafana-Alerting-Signature"  # without a timestamp header, which Grafana sends only if configured

TEST_LABELS = {"alertname": "TestAlert", "instance": "Grafana"}  # sent by the "Test" button


def is_signed(headers: Mapping[str, str], body: bytes, secret: str) -> bool:
    return fields.matches(headers.get(SIGNATURE, ""), body, secret)


BODY = Webhook
"""The parts of a body that are read."""


def parse(body: bytes, received_at: datetime) -> AlertDelivery | None:
    """Return the delivery in a request body; None for a test."""
    webhook = fields.read(Webhook, body, "Grafana", "send the contact point's own payload, without a template")
    if all(TEST_LABELS.items() <= alert.labels.items() for alert in webhook.alerts):
        return None
    return group_delivery(webhook, SOURCE, received_at)
