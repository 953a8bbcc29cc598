"""The monitoring systems that may send webhooks: their formats, signatures and secrets.

The OpenAPI description of all routes is `openapi.yaml`, completed with the models of the request bodies.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from adapters.alerts.fields import Format, Parser, SignatureCheck, WebhookSection
from adapters.alerts.generic import GenericSection, generic_parser
from adapters.teams.activity import Activity
from bot.config.section import FORMATS
from bot.config.settings import named_secret
from core.model.errors import ConfigurationError

FILE = Path(__file__).with_name("openapi.yaml")
JSON = "application/json"
REFERENCE = "#/components/schemas/{model}"


class _AsAccepted(GenerateJsonSchema):
    """A schema generator that allows numbers for strings if the model coerces them."""

    def str_schema(self, schema: core_schema.StringSchema) -> JsonSchemaValue:
        described = super().str_schema(schema)
        return described | {"type": ["string", "number"]} if self._config.coerce_numbers_to_str else described


def describe() -> dict[str, Any]:
    """Return the complete description."""
    description: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    schemas = description["components"]["schemas"]
    bodies: dict[str, type[BaseModel]] = {
        each.source: each.body for each in FORMATS.all().values() if isinstance(each, Format)
    }
    for name, model in {**bodies, "TeamsActivity": Activity}.items():
        schema = model.model_json_schema(
            ref_template=REFERENCE.replace("{model}", f"{name}{{model}}"), schema_generator=_AsAccepted
        )
        schemas |= {f"{name}{part}": part_schema for part, part_schema in schema.pop("$defs", {}).items()}
        schemas[name] = schema
    anything = {"type": ["object", "array"], "description": "Any JSON; plumbline.yaml maps its fields."}
    schemas |= {source: anything for source in FORMATS.all() if source not in bodies}
    delivery = description["paths"].pop("/webhooks/{source}")
    for source in FORMATS.all():
        described = deepcopy(delivery)
        described["post"]["operationId"] = source
        described["post"]["requestBody"]["content"][JSON]["schema"] = {"$ref": REFERENCE.format(model=source)}
        description["paths"][f"/webhooks/{source}"] = described
    return description


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
