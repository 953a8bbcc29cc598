"""The monitoring systems that may send webhooks: their formats, signatures and secrets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from adapters.alerts import (
    alertmanager,
    azure_monitor,
    datadog,
    grafana,
    incident_io,
    opsgenie,
    pagerduty,
    sentry,
    servicenow,
)
from adapters.alerts.fields import Format
from bot.config.section import GenericWebhookSection, WebhooksSection
from bot.config.settings import named_secret
from core.model.errors import ConfigurationError
from core.model.incident import AlertDelivery

if TYPE_CHECKING:
    from adapters.alerts.generic import GenericFormat

FORMATS: tuple[Format[Any], ...] = (
    alertmanager.FORMAT,
    azure_monitor.FORMAT,
    datadog.FORMAT,
    grafana.FORMAT,
    incident_io.FORMAT,
    opsgenie.FORMAT,
    opsgenie.JIRA_SERVICE_MANAGEMENT,
    pagerduty.FORMAT,
    sentry.FORMAT,
    servicenow.FORMAT,
)

Parser = Callable[[bytes, datetime], AlertDelivery | None]
SignatureCheck = Callable[[Mapping[str, str], bytes, str], bool]


@dataclass(frozen=True, slots=True)
class WebhookSource:
    """A webhook source: its format (see `adapters.alerts.fields.Format`), and its own secret; None for the shared one."""

    parse: Parser
    is_signed: SignatureCheck | None = None
    secret: str | None = None


def webhook_parsers(webhooks: WebhooksSection) -> dict[str, Parser]:
    """Return all formats by source name. Raises ConfigurationError for an invalid JSONPath."""
    parsers: dict[str, Parser] = {each.source: each.parse for each in FORMATS}
    if webhooks.generic is not None:
        parsers["generic"] = _generic(webhooks.generic).parse
    return parsers


def webhook_sources(webhooks: WebhooksSection) -> dict[str, WebhookSource]:
    """Return all sources by name. Raises ConfigurationError for a secret missing in the environment."""
    signatures = {each.source: each.is_signed for each in FORMATS}
    sources = dict[str, WebhookSource]()
    for name, parse in webhook_parsers(webhooks).items():
        variable = getattr(webhooks, name).secret_env
        secret = named_secret(variable, f"webhooks.{name}") if variable else None
        sources[name] = WebhookSource(parse, signatures.get(name), secret)
    return sources


def webhook_parser(webhooks: WebhooksSection, source: str) -> Parser:
    """Return the format of a source. Raises ConfigurationError if there is none."""
    parsers = webhook_parsers(webhooks)
    if source not in parsers:
        advice = f"use one of {', '.join(sorted(parsers))}, or set `webhooks: generic` in plumbline.yaml"
        raise ConfigurationError(f"There is no webhook format {source}: {advice}.")
    return parsers[source]


def _generic(section: GenericWebhookSection) -> GenericFormat:
    # Imported late: few workspaces use it, and its JSONPath library is slow to load.
    from adapters.alerts.generic import GenericFormat

    paths = section.model_dump(exclude={"secret_env", "labels", "statuses"})
    return GenericFormat(paths, section.labels, section.statuses)
