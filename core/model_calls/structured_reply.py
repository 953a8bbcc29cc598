"""Parsing of a language model's reply into a typed value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from core.model.errors import InvalidReply
from core.model.language_model import ModelRequest
from core.ports import LanguageModel

T = TypeVar("T")

Choices = Mapping[str, Sequence[str]]  # field → the allowed values of it, or of each of its items
ANY: Choices = {}


def schema_of(kind: type[T], choices: Choices = ANY) -> dict[str, Any]:
    """Return the JSON schema of a frozen dataclass or, without `choices`, of a union of dataclasses."""
    schema = TypeAdapter(kind).json_schema()
    for field, values in choices.items():
        allowed = schema["properties"][field]
        (allowed["items"] if allowed["type"] == "array" else allowed)["enum"] = list(values)
    return schema


async def structured(model: LanguageModel, request: ModelRequest, kind: type[T], choices: Choices = ANY) -> T:
    """Ask for a reply of type `kind` whose fields have allowed values, and return it. The request's schema is replaced.

    Raises InvalidReply if the reply was truncated or is not valid, and the errors of the port.
    """
    reply = await model.generate(replace(request, schema=schema_of(kind, choices)))
    try:
        found = TypeAdapter(kind).validate_json(reply.text)
    except ValidationError as error:
        shortened = "it was cut at max_tokens" if not reply.complete else f"{error.error_count()} faults"
        raise InvalidReply(f"{model.name} gave no valid {kind.__name__}: {shortened}.") from error
    for field, values in choices.items():
        said: str | Sequence[str] = getattr(found, field)
        if not set((said,) if isinstance(said, str) else said) <= set(values):
            raise InvalidReply(f"{model.name} gave no valid {kind.__name__}: {field} is none of those allowed.")
    return found
