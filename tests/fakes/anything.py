"""Whatever a JSON schema allows, at random: what the worst model says that a grammar still holds."""

from __future__ import annotations

import random
import string
from collections.abc import Mapping
from typing import Any

LONGEST = 60  # characters of a text
MOST = 3  # items of a list that has no limit


def anything(schema: Mapping[str, Any], chance: random.Random, root: Mapping[str, Any] | None = None) -> Any:
    """A value that is valid under the schema."""
    root = root or schema
    if "$ref" in schema:
        return anything(root["$defs"][schema["$ref"].rpartition("/")[2]], chance, root)
    if "anyOf" in schema:
        return anything(chance.choice(schema["anyOf"]), chance, root)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return chance.choice(schema["enum"])
    match schema["type"]:
        case "object":
            return {name: anything(each, chance, root) for name, each in schema["properties"].items()}
        case "array":
            count = chance.randint(schema.get("minItems", 0), schema.get("maxItems", MOST))
            return [anything(schema["items"], chance, root) for _ in range(count)]
        case "integer":
            return chance.randint(-5, 20)
        case "boolean":
            return chance.random() < 0.5
        case _:
            shortest = schema.get("minLength", 0)
            length = chance.randint(shortest, max(shortest, min(LONGEST, schema.get("maxLength", LONGEST))))
            return "".join(chance.choices(string.printable, k=length))
