"""A reply of the language model as one of our types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from core.model.errors import InvalidReply
from core.model.language_model import ModelRequest
from core.ports import LanguageModel

T = TypeVar("T")

Choices = Mapping[str, Sequence[str]]  # field → the values that it, or each of its items, may have
ANY: Choices = {}


def schema_of(kind: type[T], choices: Choices = ANY) -> dict[str, Any]:
    """The JSON schema of a frozen dataclass or, without `choices`, of a union of them."""
    schema = TypeAdapter(kind).json_schema()
    for field, values in choices.items():
        allowed = schema["properties"][field]
        (allowed["items"] if allowed["type"] == "array" else allowed)["enum"] = list(values)
    return schema


async def structured(model: LanguageModel, request: ModelRequest, kind: type[T], choices: Choices = ANY) -> T:
    """The model's reply as a `kind` whose fields have allowed values; the request's schema is set to its.

    Raises InvalidReply if the reply was cut or is not valid, and what the port raises.
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
