"""The `webhooks` section of plumbline.yaml: secrets of monitoring systems, and the format of the generic webhook."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from bot.config.section import Section

Path = Annotated[str, Field(max_length=500)]  # JSONPath, RFC 9535


class WebhookSection(Section):
    """A webhook. `secret_env` names the variable with its secret; the default secret is PLUMBLINE_WEBHOOK_SECRET."""

    secret_env: str = ""


class GenericWebhookSection(WebhookSection):
    """The paths of the fields in a body; see `adapters.alerts.generic.Paths`."""

    title: Annotated[Path, Field(min_length=1)]
    group: Path = ""
    status: Path = ""
    by: Path = ""
    service: Path = ""
    severity: Path = ""
    description: Path = ""
    url: Path = ""
    runbook: Path = ""
    starts_at: Path = ""
    updated_at: Path = ""
    labels: dict[str, Path] = Field(default_factory=dict[str, str])
    statuses: dict[str, Literal["firing", "updated", "acknowledged", "resolved", "test"]] = Field(
        default_factory=dict[str, Literal["firing", "updated", "acknowledged", "resolved", "test"]]
    )


class WebhooksSection(Section):
    alertmanager: WebhookSection = WebhookSection()
    azure_monitor: WebhookSection = WebhookSection()
    datadog: WebhookSection = WebhookSection()
    grafana: WebhookSection = WebhookSection()
    jira_service_management: WebhookSection = WebhookSection()
    opsgenie: WebhookSection = WebhookSection()
    pagerduty: WebhookSection = WebhookSection()
    sentry: WebhookSection = WebhookSection()
    generic: GenericWebhookSection | None = None
