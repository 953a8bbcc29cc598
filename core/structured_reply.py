"""A reply of the language model as one of our types."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from core.errors import InvalidReply
from core.language_model import ModelRequest
from core.ports import LanguageModel

T = TypeVar("T")


def schema_of(kind: type[T]) -> dict[str, Any]:
    """The JSON schema of a frozen dataclass or a union of them."""
    return TypeAdapter(kind).json_schema()


async def structured(model: LanguageModel, request: ModelRequest, kind: type[T]) -> T:
    """The model's reply as a `kind`; the request's schema is set to its.

    Raises InvalidReply if the reply was cut or is not valid, and what the port raises.
    """
    reply = await model.generate(replace(request, schema=schema_of(kind)))
    try:
        return TypeAdapter(kind).validate_json(reply.text)
    except ValidationError as error:
        shortened = "it was cut at max_tokens" if not reply.complete else f"{error.error_count()} faults"
        raise InvalidReply(f"{model.name} gave no valid {kind.__name__}: {shortened}.") from error
