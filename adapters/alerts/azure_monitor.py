"""Azure Monitor's common alert schema: https://learn.microsoft.com/azure/azure-monitor/alerts/alerts-common-schema

An alert rule on a resource is one group; each time that it fires, Azure makes a new alert.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import AwareDatetime, Field

from adapters.alerts import fields
from adapters.alerts.fields import Payload, Words
from core.model.incident import Alert, AlertDelivery, AlertStatus, Severity

SOURCE = "azure_monitor"
REMEDY = "enable the common alert schema in the action group's webhook"

# Sev3 is "Informational" in Azure, where other systems warn with it.
SEVERITIES = {
    "sev0": Severity.CRITICAL,
    "sev1": Severity.CRITICAL,
    "sev2": Severity.WARNING,
    "sev3": Severity.INFO,
    "sev4": Severity.INFO,
}
TEST_RULE = "test-alertRule"  # of the sample alerts that an action group sends with "Test action group"


class _Essentials(Payload):
    alertId: str = Field(min_length=1)
    alertRule: Words = ""
    severity: Words = ""
    signalType: Words = ""
    monitorCondition: Literal["Fired", "Resolved"]
    monitoringService: Words = ""
    alertTargetIDs: list[Words] | None = None
    configurationItems: list[Words] | None = None
    firedDateTime: AwareDatetime | None = None
    resolvedDateTime: AwareDatetime | None = None
    description: Words = ""
    investigationLink: Words = ""


class _Data(Payload):
    essentials: _Essentials
    customProperties: dict[str, Words] | None = None


class _Webhook(Payload):
    schemaId: Literal["azureMonitorCommonAlertSchema"]
    data: _Data


BODY = _Webhook
"""The parts of a body that are read."""


def parse(body: bytes, received_at: datetime) -> AlertDelivery | None:
    """Return the delivery that a request body holds; None for a test of the action group."""
    data = fields.read(_Webhook, body, "Azure Monitor", REMEDY).data
    if data.essentials.alertRule == TEST_RULE:
        return None
    targets = "|".join(data.essentials.alertTargetIDs or data.essentials.configurationItems or ())
    group = fields.identity(f"{data.essentials.alertRule}|{targets}".lower())
    return AlertDelivery(
        key=f"{SOURCE}:{fields.digest(body)}",
        source=SOURCE,
        group_key=group,
        alerts=(_read(data, group, received_at),),
        received_at=received_at,
        one_event=True,  # a body holds the id and the times of one firing
    )


def _read(data: _Data, group: str, received_at: datetime) -> Alert:
    essentials = data.essentials
    resolved = essentials.monitorCondition == "Resolved"
    ended = fields.past(essentials.resolvedDateTime, received_at) or received_at
    started = fields.past(essentials.firedDateTime, received_at) or received_at
    labels = _labels(data)
    name = fields.text(essentials.alertRule, fields.MAX_SUMMARY_LENGTH) or "alert without a name"
    return Alert(
        fingerprint=group,
        name=name,
        status=AlertStatus.RESOLVED if resolved else AlertStatus.FIRING,
        severity=SEVERITIES.get(essentials.severity.lower(), Severity.WARNING),
        starts_at=started,
        service=fields.first(labels, (*fields.SERVICE_LABELS, "resource")),
        summary=name,
        description=fields.text(essentials.description, fields.MAX_DESCRIPTION_LENGTH),
        url=fields.web_address(essentials.investigationLink),
        labels=labels,
        runbook_url=fields.runbook(labels, said=essentials.description),
        ends_at=ended if resolved else None,
        as_of=ended if resolved else started,
    )


def _labels(data: _Data) -> dict[str, str]:
    essentials = data.essentials
    facts = {
        "resource": next(iter(essentials.configurationItems or ()), ""),
        "severity": essentials.severity,
        "signal": essentials.signalType,
        "monitoring_service": essentials.monitoringService,
    }
    return fields.labels((facts | (data.customProperties or {})).items())
