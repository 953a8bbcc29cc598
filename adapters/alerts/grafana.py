"""Grafana Alerting's webhook contact point.

https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier/
"""

from __future__ import annotations

from collections.abc import Mapping

from adapters.alerts import fields
from adapters.alerts.alertmanager import ENDS, Webhook

SIGNATURE = "X-Grafana-Alerting-Signature"  # without a timestamp header, which Grafana sends only if configured
TEST_LABELS = {"alertname": "TestAlert", "instance": "Grafana"}  # sent by the "Test" button


def _is_signed(headers: Mapping[str, str], body: bytes, secret: str) -> bool:
    return fields.matches(headers.get(SIGNATURE, ""), body, secret)


def _understood(webhook: Webhook) -> Webhook | None:
    is_test = all(TEST_LABELS.items() <= alert.labels.items() for alert in webhook.alerts)
    return None if is_test else webhook.for_people()


FORMAT = fields.Format(
    "grafana",
    "Grafana",
    "send the contact point's own payload, without a template",
    Webhook,
    ENDS,
    _understood,
    _is_signed,
)
