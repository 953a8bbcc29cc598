"""The OpenAPI description of all routes: `openapi.yaml` completed with the models of the request bodies."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from adapters.alerts.fields import Format
from adapters.teams.activity import Activity
from bot.config.section import FORMATS

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
