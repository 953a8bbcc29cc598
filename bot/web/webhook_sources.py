"""The monitoring systems that may send webhooks: their formats, signatures and secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adapters.alerts.fields import Parser, SignatureCheck, WebhookSection
from adapters.alerts.generic import GenericSection, generic_parser
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
    """Return how each source is read, by its name: a format, or a generic one of plumbline.yaml under a name of its own.

    Raises ConfigurationError for an invalid JSONPath, and for a generic one without a title.
    """
    declared = FORMATS.all()
    given = {source: sections.get(source, each.default) for source, each in declared.items()}
    parsers = {source: declared[source].parser(each) for source, each in given.items() if each is not None}
    own = {source: each for source, each in sections.items() if isinstance(each, GenericSection)}
    return parsers | {source: generic_parser(source, each) for source, each in own.items() if source not in declared}


def webhook_sources(sections: Mapping[str, WebhookSection]) -> dict[str, WebhookSource]:
    """Return all sources by name. Raises ConfigurationError for a secret missing in the environment."""
    declared = FORMATS.all()
    variables = {source: section.secret_env for source, section in sections.items() if section.secret_env}
    secrets = {source: named_secret(variable, f"webhooks.{source}") for source, variable in variables.items()}
    return {
        source: WebhookSource(parse, declared[source].is_signed if source in declared else None, secrets.get(source))
        for source, parse in webhook_parsers(sections).items()
    }


def webhook_parser(sections: Mapping[str, WebhookSection], source: str) -> Parser:
    """Return the format of a source. Raises ConfigurationError if there is none."""
    parsers = webhook_parsers(sections)
    if source not in parsers:
        advice = (
            f"use one of {', '.join(sorted(parsers))}, or describe it under `webhooks: {source}:` in plumbline.yaml"
        )
        raise ConfigurationError(f"There is no webhook format {source}: {advice}.")
    return parsers[source]
