"""The monitoring systems that may send webhooks: their formats, signatures and secrets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from adapters.alerts import alertmanager, azure_monitor, datadog, grafana, opsgenie, pagerduty, sentry
from bot.config.section import GenericWebhookSection, WebhookSection, WebhooksSection
from bot.config.settings import named_secret
from core.model.errors import ConfigurationError
from core.model.incident import AlertDelivery

if TYPE_CHECKING:
    from adapters.alerts.generic import GenericFormat

FORMATS = (alertmanager, azure_monitor, datadog, grafana, opsgenie, pagerduty, sentry)

Parser = Callable[[bytes, datetime], AlertDelivery | None]
SignatureCheck = Callable[[Mapping[str, str], bytes, str], bool]


@dataclass(frozen=True, slots=True)
class WebhookSource:
    """A webhook source. `parse` is its format (see `adapters.alerts`), `secret` its own secret; None for the shared
    one.

    `is_signed` checks a signature of headers and body with the secret; None if the source does not sign.
    """

    parse: Parser
    is_signed: SignatureCheck | None = None
    secret: str | None = None


def webhook_parsers(webhooks: WebhooksSection) -> dict[str, Parser]:
    """Return all formats by source name. Raises ConfigurationError for an invalid JSONPath."""
    parsers: dict[str, Parser] = {each.SOURCE: each.parse for each in FORMATS}
    parsers[opsgenie.JIRA_SERVICE_MANAGEMENT] = partial(opsgenie.parse, source=opsgenie.JIRA_SERVICE_MANAGEMENT)
    if webhooks.generic is not None:
        parsers["generic"] = _generic(webhooks.generic).parse
    return parsers


def webhook_sources(webhooks: WebhooksSection) -> dict[str, WebhookSource]:
    """Return all sources by name. Raises ConfigurationError for a secret missing in the environment."""
    signatures: dict[str, SignatureCheck] = {each.SOURCE: each.is_signed for each in (grafana, pagerduty, sentry)}
    sections: dict[str, WebhookSection | None] = {
        name: getattr(webhooks, name) for name in WebhooksSection.model_fields
    }
    return {
        name: WebhookSource(parse, signatures.get(name), _secret(name, sections[name]))
        for name, parse in webhook_parsers(webhooks).items()
    }


def webhook_parser(webhooks: WebhooksSection, source: str) -> Parser:
    """Return the format of a source. Raises ConfigurationError if there is none."""
    parsers = webhook_parsers(webhooks)
    if source not in parsers:
        raise ConfigurationError(f"There is no webhook format {source}: use one of {', '.join(sorted(parsers))}.")
    return parsers[source]


def _secret(name: str, section: WebhookSection | None) -> str | None:
    if section is None or not section.secret_env:
        return None
    return named_secret(section.secret_env, f"webhooks.{name}")


def _generic(section: GenericWebhookSection) -> GenericFormat:
    # Imported late: few workspaces use it, and its JSONPath library is slow to load.
    from adapters.alerts.generic import GenericFormat, Paths

    return GenericFormat(Paths(**section.model_dump(exclude={"secret_env"})))
