"""What monitoring systems send on the first day, unconfigured: every rule of kube-prometheus, and default payloads."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
NEVER = "0001-01-01T00:00:00Z"
Payload = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sent:
    """A payload, and what its message must tell: its title, and the line below its state; `unwanted` is in neither."""

    name: str
    source: str
    payload: Payload
    title: str
    told: str = ""
    unwanted: str = "%%%"

    @property
    def body(self) -> bytes:
        return json.dumps(self.payload).encode()


def alertmanager(labels: dict[str, str], annotations: dict[str, str]) -> Payload:
    alert = {
        "status": "firing",
        "labels": labels,
        "annotations": annotations,
        "startsAt": "2026-03-14T09:26:10.223Z",
        "endsAt": NEVER,
        "generatorURL": "http://prometheus-k8s-0:9090/graph?g0.expr=up&g0.tab=1",
        "fingerprint": "57c6d9296de2ad39",
    }
    return {
        "version": "4",
        "groupKey": f'{{}}:{{namespace="{labels.get("namespace", "")}"}}',
        "truncatedAlerts": 0,
        "status": "firing",
        "receiver": "plumbline",
        "groupLabels": {},
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": "http://alertmanager-main-0:9093",
        "alerts": [alert],
    }


def grafana(labels: dict[str, str], annotations: dict[str, str] | None = None) -> Payload:
    """Return the payload of Grafana's webhook contact point, which has no version 4."""
    body = alertmanager(labels, annotations or {})
    body["alerts"][0] |= {
        "generatorURL": "https://grafana.example/alerting/grafana/abc/view?orgId=1",
        "silenceURL": "https://grafana.example/alerting/silence/new?alertmanager=grafana",
        "dashboardURL": "",
        "panelURL": "",
        "values": {"A": 96.4, "C": 1},
        "valueString": "[ var='A' labels={} value=96.4 ]",
    }
    return body | {"version": "1", "orgId": 1, "title": "[FIRING:1]", "state": "alerting", "message": "**Firing**"}


def datadog(title: str, said: str) -> Payload:
    """Return the payload that Datadog fills in if nobody changes it."""
    body = f"""%%%
{said}

@webhook-plumbline

[![Metric Graph](https://p.datadoghq.com/snapshot/view/1.png)](https://app.datadoghq.com/monitors/1?from_ts=1)

**p99:trace.servlet.request{{*}}** was **> 1.5** on average during the **last 5m**.

The monitor was last triggered at Sat Mar 14 2026 09:26:10 UTC.

- - -

[[Monitor Status](https://app.datadoghq.com/monitors/1)] · [[Edit Monitor](https://app.datadoghq.com/monitors/1/edit)]
%%%"""
    return {
        "id": "7341862",
        "title": title,
        "body": body,
        "date": "1773480370000",
        "last_updated": "1773480370000",
        "event_type": "query_alert_monitor",
        "org": {"id": "11", "name": "Example"},
    }


WATCHDOG = alertmanager({"alertname": "Watchdog", "severity": "none"}, {"summary": "It fires always."})
RULE = {"rulename": "High memory", "datasource_uid": "P1", "ref_id": "A", "grafana_folder": "node"}
DEFAULTS = (
    Sent(
        "a Grafana rule without annotations",
        "grafana",
        grafana({"alertname": "High memory", "grafana_folder": "node", "instance": "quay-3"}),
        "High memory (quay-3)",
    ),
    Sent(
        "a Grafana rule with a summary",
        "grafana",
        grafana({"alertname": "High memory", "service": "api"}, {"summary": "Memory of the api is nearly full"}),
        "Memory of the api is nearly full",
    ),
    Sent(
        "a Grafana rule whose data is missing",
        "grafana",
        grafana({"alertname": "DatasourceNoData", **RULE}),
        "No data for rule “High memory”",
        "Whether its condition holds is unknown.",
    ),
    Sent(
        "a Grafana rule that cannot be evaluated",
        "grafana",
        grafana({"alertname": "DatasourceError", **RULE}, {"Error": "context deadline exceeded"}),
        "Cannot evaluate rule “High memory”",
        "Error: context deadline exceeded",
    ),
    Sent(
        "a Datadog monitor that alerts",
        "datadog",
        datadog("[Triggered on {service:payment-gateway}] p99 is high", "Authorisations take long."),
        "p99 is high",
        "Authorisations take long. p99:trace.servlet.request{*} was > 1.5 on average during the last 5m.",
        "@webhook-plumbline",
    ),
    Sent(
        "a Datadog monitor of a host",
        "datadog",
        datadog("[P2] [Warn on {host:quay-3}] Disk nearly full", "Disk is 91 % full."),
        "Disk nearly full (quay-3)",
        "Disk is 91 % full.",
        "Monitor Status",
    ),
    Sent(
        "a Datadog monitor without data",
        "datadog",
        datadog("[No Data on {host:quay-3}] Disk usage", "Is the agent alive?"),
        "No data for “Disk usage” (quay-3)",
        "Is the agent alive?",
        "last triggered",
    ),
)
