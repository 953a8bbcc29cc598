"""Azure Monitor's common alert schema: https://learn.microsoft.com/azure/azure-monitor/alerts/alerts-payload-samples

An alert rule on a resource is one group, with an alert for each combination of dimensions or labels; an event of
Service Health is one, whatever rule tells of it. Each time that a rule fires, Azure makes a new alert.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from html import unescape
from typing import Any, Literal

from pydantic import AwareDatetime, Field

from adapters.alerts import fields
from adapters.alerts.fields import AlertEvent, Format, Payload, Words
from core.model.alert import AlertEnd, AlertStatus, EndReason
from core.model.errors import MalformedInput

INFORMATIONAL = "sev3"  # in Azure, where other systems warn with it
HEALTH = frozenset(
    {"ServiceHealth", "ResourceHealth"}
)  # services whose alerts are also sent as fired when they are over
HEALTH_LABELS = ("service", "region", "trackingId", "incidentType", "stage", "cause")
ENDS = {
    "resolved": EndReason.CURED,
    "complete": EndReason.CURED,
    "rca": EndReason.CURED,
    "available": EndReason.CURED,
    "canceled": EndReason.CANCELED,
}
"""Ends by the condition of an alert, the stage of an event, or the health of a resource."""

ONGOING = frozenset({"active", "planned", "inprogress", "rescheduled", "unavailable", "degraded", "unknown"})
LEVELS = {"1": "critical", "2": "error", "3": "warning", "4": "informational", "5": "informational"}  # of an event
TEST_RULE = re.compile(
    r"test-(?:[a-z]*alertrule(?:-v\d[\w-]*+)?|availabilitytest-test-applicationinsights)", re.IGNORECASE
)
TEST_ALERT = "/Test_Alert"  # the end of an id; both are in the samples that "Test action group" sends

_TAG = re.compile(r"<[^<>]*+>")


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

    @property
    def changed_at(self) -> datetime | None:
        return self.resolvedDateTime if self.monitorCondition == "Resolved" else self.firedDateTime


class _Dimension(Payload):
    name: Words = ""
    value: Words = ""


class _Criterion(Payload):
    metricName: Words = ""
    metricValue: Words = ""
    operator: Words = ""
    threshold: Words = ""
    webTestName: Words = ""
    dimensions: list[_Dimension] | None = None
    linkToFilteredSearchResultsUI: Words = ""

    @property
    def text(self) -> str:
        limit = f" ({self.operator} {self.threshold})" if self.threshold else ""
        return f"{self.metricName or 'The value'} is {self.metricValue}{limit}." if self.metricValue else ""


class _Condition(Payload):
    allOf: list[_Criterion] | None = None


class _Context(Payload):
    """The cause of an alert. Its fields depend on the kind of the rule."""

    condition: _Condition | None = None
    properties: dict[str, Any] | None = None  # of an event; or named by the rule
    labels: dict[str, Words] | None = None  # of a rule in the language of Prometheus
    annotations: dict[str, Words] | None = None
    Dimensions: list[_Dimension] | None = None
    LinkToFilteredSearchResultsUI: Words = ""
    level: Words = ""
    status: Words = ""
    eventSource: Words = ""
    eventTimestamp: AwareDatetime | None = None
    AlertData: dict[str, Any] | None = None  # of a budget

    @property
    def criteria(self) -> list[_Criterion]:
        return (self.condition.allOf if self.condition else None) or []

    @property
    def dimensions(self) -> dict[str, str]:
        """Return what tells this alert from others of its rule."""
        lists = (self.Dimensions, *(each.dimensions for each in self.criteria))
        named = {each.name: each.value for dimensions in lists for each in dimensions or ()}
        test = next((each.webTestName for each in self.criteria), "")
        return (self.labels or {}) | named | ({"webTestName": test} if test else {})

    @property
    def is_health(self) -> bool:
        """Return whether it is an event of Azure itself, even if its sources have new names."""
        return self.eventSource in HEALTH or bool(self.text_of("trackingId") and self.text_of("incidentType"))

    def text_of(self, name: str) -> str:
        value = (self.properties or {}).get(name, (self.AlertData or {}).get(name))
        return str(value) if isinstance(value, str | int | float) else ""


class _Data(Payload):
    essentials: _Essentials
    alertContext: _Context | None = None
    customProperties: dict[str, Words] | None = None


class _Webhook(Payload):
    schemaId: Literal["azureMonitorCommonAlertSchema"]
    data: _Data


def _understood(webhook: _Webhook) -> AlertEvent | None:
    essentials, context = webhook.data.essentials, webhook.data.alertContext or _Context()
    if TEST_RULE.fullmatch(essentials.alertRule) or essentials.alertId.endswith(TEST_ALERT):
        return None
    is_health = essentials.monitoringService in HEALTH or context.is_health
    resolved, stage = essentials.monitorCondition == "Resolved", _stage(context) if is_health else ""
    if is_health and not (stage or resolved):
        raise MalformedInput("The Azure Monitor webhook does not say whether its event is over: it has no stage.")
    ended = stage if stage in ENDS else "resolved" if resolved else ""
    severity = "info" if essentials.severity.lower() == INFORMATIONAL else essentials.severity
    targets = "|".join(essentials.alertTargetIDs or essentials.configurationItems or ())
    subject = context.text_of("trackingId" if is_health else "BudgetId")
    group = f"{essentials.monitoringService if subject else essentials.alertRule}|{subject or targets}".lower()
    dimensions = context.dimensions
    name = context.text_of("title" if is_health else "BudgetName")
    links = (essentials.investigationLink, *(each.linkToFilteredSearchResultsUI for each in context.criteria))
    return AlertEvent(
        group=group,
        instance=fields.digest(group, *map(":".join, sorted(dimensions.items()))) if dimensions else "",
        title=name or essentials.alertRule or essentials.description,
        status=AlertEnd(word=ended) if ended else AlertStatus.FIRING,
        severity=[LEVELS.get(context.level, context.level), severity]
        if is_health
        else [severity],  # that of an event is always Sev4
        labels=_labels(webhook.data, context, HEALTH_LABELS if is_health else context.properties or ()),
        is_unique=True,  # a body holds the id and the times of one firing
        services=["resource"],
        description=_description(essentials, context),
        url=next(filter(None, links), context.LinkToFilteredSearchResultsUI),
        runbook=fields.runbook(context.annotations or {}),
        began=essentials.firedDateTime,
        as_of=context.eventTimestamp if is_health else essentials.changed_at,
    )


def _description(essentials: _Essentials, context: _Context) -> str:
    sentence = fields.first(context.annotations or {}, ("summary", "description"))
    communication = unescape(_TAG.sub(" ", context.text_of("communication")))
    measured = (each.text for each in context.criteria)
    dimensions = (f"{name}: {value}." for name, value in context.dimensions.items())
    return " ".join(filter(None, (essentials.description, sentence, communication, *measured, *dimensions)))


def _stage(context: _Context) -> str:
    """Return the known stage of the event of a notice of health; empty if it has none."""
    texts = (context.text_of("stage"), context.text_of("currentHealthStatus"), context.status)
    stages = ("".join(text.lower().split()) for text in texts)
    return next((stage for stage in stages if stage in ENDS or stage in ONGOING), "")


def _labels(data: _Data, context: _Context, properties: Iterable[str]) -> dict[str, str]:
    essentials = data.essentials
    return {
        "resource": next(iter(essentials.configurationItems or ()), ""),
        "severity": essentials.severity,
        "signal": essentials.signalType,
        "monitoring_service": essentials.monitoringService,
        **(data.customProperties or {}),
        **{name: context.text_of(name) for name in properties},
        **context.dimensions,
    }


FORMAT = Format(
    "azure_monitor",
    "Azure Monitor",
    "enable the common alert schema in the action group's webhook",
    _Webhook,
    ENDS,
    _understood,
)
