"""Every monitoring system that sends webhooks."""

from __future__ import annotations

from tests.fakes.monitoring_systems.azure_monitor import AzureMonitor, AzureServiceHealth
from tests.fakes.monitoring_systems.cloudwatch import CloudWatch
from tests.fakes.monitoring_systems.datadog import Datadog
from tests.fakes.monitoring_systems.grafana import Grafana
from tests.fakes.monitoring_systems.home_made import HomeMade
from tests.fakes.monitoring_systems.incident_io import IncidentIo, IncidentIoAlert
from tests.fakes.monitoring_systems.opsgenie import JiraServiceManagement, Opsgenie
from tests.fakes.monitoring_systems.pagerduty import PagerDuty
from tests.fakes.monitoring_systems.sentry import Sentry, SentryMetric
from tests.fakes.monitoring_systems.servicenow import ServiceNow
from tests.fakes.monitoring_systems.system import MonitoringSystem

SYSTEMS: tuple[type[MonitoringSystem], ...] = (
    PagerDuty,
    Opsgenie,
    JiraServiceManagement,
    AzureMonitor,
    AzureServiceHealth,
    CloudWatch,
    Grafana,
    Datadog,
    Sentry,
    SentryMetric,
    IncidentIo,
    IncidentIoAlert,
    ServiceNow,
    HomeMade,
)
