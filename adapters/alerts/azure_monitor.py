"""Azure Monitor's common alert schema: https://learn.microsoft.com/azure/azure-monitor/alerts/alerts-common-schema

An alert rule on a resource is one group; each time that it fires, Azure makes a new alert.
"""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field

from adapters.alerts.fields import SERVICE_LABELS, Event, Format, Payload, Words
from core.model.incident import AlertStatus, Severity

# Sev3 is "Informational" in Azure, where other systems warn with it.
SEVERITIES = {
    "sev0": Severity.CRITICAL,
    "sev1": Severity.CRITICAL,
    "sev2": Severity.WARNING,
    "sev3": Severity.INFO,
    "sev4": Severity.INFO,
}
TEST_RULE = "test-alertRule"  # the rule of the sample alerts that "Test action group" sends


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


def _understood(webhook: _Webhook) -> Event | None:
    essentials = webhook.data.essentials
    if essentials.alertRule == TEST_RULE:
        return None
    resolved = essentials.monitorCondition == "Resolved"
    targets = "|".join(essentials.alertTargetIDs or essentials.configurationItems or ())
    facts = {
        "resource": next(iter(essentials.configurationItems or ()), ""),
        "severity": essentials.severity,
        "signal": essentials.signalType,
        "monitoring_service": essentials.monitoringService,
    }
    return Event(
        group=f"{essentials.alertRule}|{targets}".lower(),
        title=essentials.alertRule,
        status=AlertStatus.RESOLVED if resolved else AlertStatus.FIRING,
        severity=SEVERITIES.get(essentials.severity.lower(), Severity.WARNING),
        labels=facts | (webhook.data.customProperties or {}),
        is_unique=True,  # a body holds the id and the times of one firing
        services=(*SERVICE_LABELS, "resource"),
        description=essentials.description,
        url=essentials.investigationLink,
        began=essentials.firedDateTime,
        as_of=essentials.resolvedDateTime if resolved else essentials.firedDateTime,
    )


FORMAT = Format(
    "azure_monitor",
    "Azure Monitor",
    "enable the common alert schema in the action group's webhook",
    _Webhook,
    _understood,
)
