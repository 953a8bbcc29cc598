"""JSON schemas for a server's grammar, with bounds for everything that is open.

The result allows nothing that the schema forbids. Without bounds, a small model that cannot end a number, a text or a
list would continue to `max_tokens` and leave truncated JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LARGEST = 999_999_999  # for integers without bounds
LONGEST = 1_000  # characters of a text without a limit; llama.cpp's own grammars allow 2 000
MOST = 32  # items of a list without a limit

# llguidance, an optional backend of a server, allows unlimited white space in JSON unless told otherwise. These
# separators are the ones that models and our prompts use: without the space after a colon, a model that would start a
# list with a space token would most probably leave it empty.
OPTIONS = {"x-guidance": {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}}


def grammar_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return `schema` with closed objects, with bounds where there are none, and with options for llama.cpp."""
    return {**bounded_schema(schema), **OPTIONS}


def bounded_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return `schema` with closed objects and with bounds, without options of a grammar."""
    return _bounded(schema)


def _bounded(part: Any) -> Any:
    if isinstance(part, list):
        return [_bounded(value) for value in part]
    if not isinstance(part, Mapping):
        return part
    return {
        **_bounds(part),
        **{key: value if key in {"enum", "const"} else _bounded(value) for key, value in part.items()},
    }


def _bounds(part: Mapping[str, Any]) -> dict[str, Any]:
    if "enum" in part or "const" in part:
        return {}
    match part.get("type"):
        case "object" if "properties" in part:
            return {"additionalProperties": False}
        case "integer" if not part.keys() & {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}:
            return {"minimum": -LARGEST, "maximum": LARGEST}
        case "string" if not part.keys() & {"maxLength", "pattern", "format"}:
            return {"maxLength": LONGEST}
        case "array" if "maxItems" not in part:
            return {"maxItems": MOST}
        case _:
            return {}
