"""Prometheus Alertmanager, which sends what Grafana does, with a version."""

from __future__ import annotations

from typing import Any

from tests.fakes.monitoring_systems.grafana import Grafana
from tests.fakes.monitoring_systems.system import MonitoringSystem, Payload


class Alertmanager(Grafana):
    source = "alertmanager"
    tests = False

    def group(self, status: str, labels: dict[str, str], **changes: Any) -> Payload:
        return super().group(status, labels, **changes) | {"version": "4"}

    def headers(self, body: bytes, secret: str) -> dict[str, str]:
        return MonitoringSystem.headers(self, body, secret)
