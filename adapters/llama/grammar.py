"""A JSON schema as a server's grammar needs it: what a type of ours leaves open is closed or bounded.

Nothing is allowed that the schema does not allow. A small model that cannot end a number, a text or a list would
otherwise go on to `max_tokens`, and leave JSON that is cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LARGEST = 999_999_999  # of a whole number without bounds
LONGEST = 1_000  # characters of a text without a limit; llama.cpp's own grammars count to 2 000
MOST = 32  # items of a list without a limit

# llguidance, which a server may be built with, allows white space without end between the parts of JSON unless told. The
# separators are those that models write, and that the prompts show: where a model is denied the space after a colon, a
# list that it would have begun by a token with a space is most likely left empty.
OPTIONS = {"x-guidance": {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}}


def grammar_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """`schema` with its objects closed, and bounds on what has none."""
    return {**_bounded(schema), **OPTIONS}


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
