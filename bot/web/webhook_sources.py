"""The monitoring systems that may send webhooks: their formats, signatures and secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adapters.alerts.fields import Format, Parser, SignatureCheck, WebhookSection
from bot.config.section import FORMATS
from bot.config.settings import named_secret
from core.model.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class WebhookSource:
    """A webhook source: its format (see `adapters.alerts.fields.Format`), and its own secret; None for the shared one."""

    parse: Parser
    is_signed: SignatureCheck | None = None
    secret: str | None = None


def webhook_parsers(sections: Mapping[str, WebhookSection]) -> dict[str, Parser]:
    """Return how each source is read, by its name. Raises ConfigurationError for an invalid JSONPath."""
    return {
        source: each.parse if isinstance(each, Format) else each.parser(sections[source])
        for source, each in FORMATS.all().items()
        if isinstance(each, Format) or source in sections
    }


def webhook_sources(sections: Mapping[str, WebhookSection]) -> dict[str, WebhookSource]:
    """Return all sources by name. Raises ConfigurationError for a secret missing in the environment."""
    declared = FORMATS.all()
    variables = {source: section.secret_env for source, section in sections.items() if section.secret_env}
    secrets = {source: named_secret(variable, f"webhooks.{source}") for source, variable in variables.items()}
    return {
        source: WebhookSource(parse, declared[source].is_signed, secrets.get(source))
        for source, parse in webhook_parsers(sections).items()
    }


def webhook_parser(sections: Mapping[str, WebhookSection], source: str) -> Parser:
    """Return the format of a source. Raises ConfigurationError if there is none."""
    parsers = webhook_parsers(sections)
    if source not in parsers:
        advice = f"use one of {', '.join(sorted(parsers))}, or set `webhooks: generic` in plumbline.yaml"
        raise ConfigurationError(f"There is no webhook format {source}: {advice}.")
    return parsers[source]
