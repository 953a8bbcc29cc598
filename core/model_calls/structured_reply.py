"""Parsing of a language model's reply into a typed value."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from core.model.errors import InvalidReply
from core.model.language_model import ModelRequest
from core.ports import LanguageModel

T = TypeVar("T")


def schema_of(kind: type[T]) -> dict[str, Any]:
    """Return the JSON schema of a frozen dataclass."""
    return TypeAdapter(kind).json_schema()


async def structured(model: LanguageModel, request: ModelRequest, kind: type[T]) -> T:
    """Ask for a reply of type `kind`, and return it. The request's schema is replaced.

    Raises InvalidReply if the reply was truncated or is not valid, and the errors of the port.
    """
    reply = await model.generate(replace(request, schema=schema_of(kind)))
    try:
        return TypeAdapter(kind).validate_json(reply.text)
    except ValidationError as error:
        shortened = "it was cut at max_tokens" if not reply.complete else f"{error.error_count()} faults"
        raise InvalidReply(f"{model.name} gave no valid {kind.__name__}: {shortened}.") from error
