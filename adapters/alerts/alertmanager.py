"""Alertmanager's webhook, version 4, and Grafana's, which resembles it.

https://prometheus.io/docs/alerting/latest/configuration/#webhook_config

Some alerts fire because the data of their rule is missing, and are worded so:
https://grafana.com/docs/grafana/latest/alerting/fundamentals/alert-rule-evaluation/stale-alert-instances/
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Literal
from urllib.parse import parse_qs, urlsplit

from pydantic import AwareDatetime, Field

from adapters.alerts import fields
from adapters.alerts.workload import service_of, subject_of
from core.model.alert import MAX_KEPT_ALERTS, NAMELESS, Alert, AlertDelivery, AlertEnd, AlertStatus, EndReason, Severity
from core.model.errors import MalformedInput

NOTES = {"root cause": ("root_cause", "rootCause", "cause"), "fix": ("fix", "resolution"), "owner": ("owner",)}
"""Fields of a note on how an alert ended, and the annotations that may hold each."""


class _Alert(fields.Payload):
    status: Literal["firing", "resolved"]
    labels: dict[str, str]
    annotations: dict[str, str] = Field(default={})
    startsAt: AwareDatetime = fields.NO_TIME
    endsAt: AwareDatetime | None = None
    generatorURL: str = ""
    fingerprint: str = ""

    @property
    def identity(self) -> str:
        """Return Alertmanager's fingerprint, or a digest of the labels if the sender omits it."""
        return (
            fields.identity(self.fingerprint)
            if self.fingerprint
            else fields.digest(*map("=".join, sorted(self.labels.items())))[:16]
        )


class Webhook(fields.Payload):
    """A group of alerts, as sent by Alertmanager and compatible senders."""

    groupKey: Annotated[str, Field(min_length=1)]
    alerts: Annotated[list[_Alert], Field(min_length=1)]
    truncatedAlerts: Annotated[int, Field(ge=0)] = 0

    def delivery(
        self, source: str, _: bytes, received_at: datetime, /, *, system: str, ends: fields.Ends
    ) -> AlertDelivery:
        """Return the delivery of the group.

        Of too many alerts, MAX_KEPT_ALERTS firing and as many resolved ones are kept (see `_kept`), and the rest are
        counted in `omitted`. Long labels and texts are truncated, after the severity and the service were read in them. A
        missing or future start becomes the time of the request.
        """
        kept = _kept(self.alerts)
        # Two requests have equal keys exactly when they state the same about the same alerts.
        states = sorted(
            " ".join((alert.identity, alert.status, alert.startsAt.isoformat(), *_state_reasons(alert.annotations)))
            for alert in self.alerts
        )
        return AlertDelivery(
            key=f"{source}:{fields.digest(self.groupKey, *states)}",
            source=source,
            group_key=fields.group_key(self.groupKey),
            alerts=tuple(_alert(alert, received_at, system, ends) for alert in kept),
            received_at=received_at,
            omitted=len(self.alerts) - len(kept) + self.truncatedAlerts,
            replicated=True,
        )

    def for_people(self) -> Webhook | None:
        """Return the group without alerts that say that they are for nobody; None if there are no others."""
        alerts = [alert for alert in self.alerts if not fields.is_for_nobody(alert.labels)]
        return self.model_copy(update={"alerts": alerts}) if alerts else None


class _Version4(Webhook):
    version: Literal["4"]


ENDS = {
    "resolved": EndReason.CURED,
    "MissingSeries": EndReason.NO_DATA,
    "NoData": EndReason.NO_DATA,
    "Error": EndReason.NO_DATA,
    "Paused": EndReason.PAUSED,
    "Updated": EndReason.RULE_CHANGED,
    "RuleDeleted": EndReason.DELETED,
}
"""The reasons of ends, by Grafana's annotation. Prometheus gives none: the condition of its rule does not hold any more."""

FORMAT = fields.Format("alertmanager", "Alertmanager", "send payload version 4", _Version4, ENDS, Webhook.for_people)


def parse(body: bytes, received_at: datetime) -> AlertDelivery:
    """Return the delivery in a request body. Raises MalformedInput if it is not a version 4 webhook, or for nobody."""
    delivery = FORMAT.parse(body, received_at)
    if delivery is None:
        raise MalformedInput("The Alertmanager webhook holds only alerts of severity “none”, which are for nobody.")
    return delivery


def _kept(alerts: Sequence[_Alert]) -> list[_Alert]:
    """Return the earliest alert of each state, then its worst ones, so that later requests about a group keep the same."""
    kept: list[_Alert] = []
    for status in ("firing", "resolved"):
        earliest = sorted((alert for alert in alerts if alert.status == status), key=lambda a: (a.startsAt, a.identity))
        kept += [*earliest[:1], *sorted(earliest[1:], key=_rank)][:MAX_KEPT_ALERTS]
    return kept


def _rank(alert: _Alert) -> int:
    return [*Severity].index(fields.severity(*fields.severities(alert.labels)))


def _alert(alert: _Alert, received_at: datetime, system: str, ends: fields.Ends) -> Alert:
    labels, annotations = alert.labels, alert.annotations
    (kept, others), severities = fields.labels(labels), fields.severities(labels)
    named = AlertEnd(word=next(_state_reasons(annotations), alert.status))
    end = fields.end_of(named, system, ends) if alert.status == "resolved" else None
    name, summary, description = wording(labels, annotations, alert.generatorURL)
    subject = subject_of(labels, name)
    sentence = summary or description.partition("\n")[0] or (name if subject else "")
    return Alert(
        fingerprint=alert.identity,
        name=fields.text(name, fields.MAX_VALUE_LENGTH),
        status=AlertStatus(alert.status),
        severity=fields.severity(*severities),
        starts_at=fields.past(alert.startsAt, received_at) or received_at,
        service=fields.text(service_of(labels, name), fields.MAX_VALUE_LENGTH),
        summary=fields.with_subject(sentence, subject),
        description=fields.described(description, severities, others),
        labels=kept,
        ends_at=fields.past(alert.endsAt, received_at) if end is not None else None,
        url=fields.web_address(alert.generatorURL),
        runbook_url=fields.runbook(annotations, labels),
        note=_note(annotations) if end is not None and end.reason is EndReason.CURED else "",
        end=end,
    )


def _state_reasons(annotations: Mapping[str, str]) -> Iterator[str]:
    """Yield the reasons for a state in Grafana: “NoData, KeepLast”."""
    return filter(None, map(str.strip, annotations.get("grafana_state_reason", "").split(",")))


def _note(annotations: Mapping[str, str]) -> str:
    """Return the resolution in the annotations as a note (see `core.incidents.thread_notes`)."""
    texts = ((name, fields.first(annotations, names)) for name, names in NOTES.items())
    cut = ((name, fields.text(text, fields.MAX_SUMMARY_LENGTH)) for name, text in texts if text)
    return "\n".join(f"{name}: {' '.join(text.split())}" for name, text in cut)


NO_DATA = "No data for rule"
NOT_EVALUATED = "Cannot evaluate rule"
STATES = {"DatasourceNoData": NO_DATA, "NoData": NO_DATA, "DatasourceError": NOT_EVALUATED, "Error": NOT_EVALUATED}
"""What an alert says by its name, or by the annotation `grafana_state_reason`, if its rule reads nothing."""

_ABSENCE = re.compile(r"\A[\s(]*+absent(?:_over_time)?+\s*+\(")
_OR = re.compile(r"\bor\b")


def wording(labels: Mapping[str, str], annotations: Mapping[str, str], generator: str) -> tuple[str, str, str]:
    """Return the name, the summary and the description of an alert.

    If its rule reads nothing, what the rule would say is not stated as a fact.
    """
    name = labels.get("alertname", NAMELESS)
    rule = labels.get("rulename") or (labels.get("datasource_uid", "") if name in STATES else "") or name
    summary = fields.first(annotations, ("summary", "title", "message"))
    description = fields.first(annotations, ("description", "message"))
    if state := next(filter(None, map(STATES.get, (name, *_state_reasons(annotations)))), ""):
        facts = {"Error": annotations.get("Error", ""), "Data source": labels.get("datasource_uid", "")}
        facts["If its condition held, the rule would say"] = ". ".join(filter(None, (summary, description)))
        lines = (f"{fact}: {value}" for fact, value in facts.items() if value)
        return rule, f"{state} “{rule}”", "\n".join(("Whether its condition holds is unknown.", *lines))
    if _fires_on_absence(generator):
        return name, f"{NO_DATA} “{name}”{f': {summary}' if summary else ''}", description
    return name, summary, description


def _fires_on_absence(generator: str) -> bool:
    """Return whether the address of an expression in Prometheus holds one that is true only if series are missing."""
    try:
        expressions = parse_qs(urlsplit(fields.web_address(generator)).query).get("g0.expr", [])
    except ValueError:
        return False
    return bool(expressions) and all(map(_ABSENCE.match, _OR.split(expressions[0])))


SIGNATURE = "X-Grafana-Alerting-Signature"  # without a timestamp header, which Grafana sends only if configured
TEST_LABELS = {"alertname": "TestAlert", "instance": "Grafana"}  # sent by the "Test" button


def _is_signed(headers: Mapping[str, str], body: bytes, secret: str) -> bool:
    return fields.matches(headers.get(SIGNATURE, ""), body, secret)


def _understood(webhook: Webhook) -> Webhook | None:
    is_test = all(TEST_LABELS.items() <= alert.labels.items() for alert in webhook.alerts)
    return None if is_test else webhook.for_people()


GRAFANA = fields.Format(
    "grafana",
    "Grafana",
    "send the contact point's own payload, without a template",
    Webhook,
    ENDS,
    _understood,
    _is_signed,
)
