"""Parsing of a language model's reply into a typed value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from core.model.errors import InvalidReply
from core.model.language_model import ModelReply, ModelRequest
from core.ports import LanguageModel

T = TypeVar("T")

Choices = Mapping[str, Sequence[str]]  # field → its allowed values, or those of its items
ANY: Choices = MappingProxyType({})


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def schema_of(kind: type[T], choices: Choices = ANY) -> dict[str, Any]:
    """Return the JSON schema of a frozen dataclass."""
    schema = _adapter(kind).json_schema()
    for name, values in choices.items():
        allowed = schema["properties"][name]
        allowed.get("items", allowed)["enum"] = list(values)
    return schema


def ignore_reply(_: ModelReply) -> None:
    """Use the parsed value alone."""


async def structured(
    model: LanguageModel,
    request: ModelRequest,
    kind: type[T],
    choices: Choices = ANY,
    on_reply: Callable[[ModelReply], None] = ignore_reply,
) -> T:
    """Ask for a reply of type `kind` whose fields have the allowed values, and return it. The request's schema is replaced.

    `on_reply` receives the reply before it is parsed. Raises InvalidReply if the reply was truncated or is not valid, and
    the errors of the port.
    """
    reply = await model.generate(replace(request, schema=schema_of(kind, choices)))
    on_reply(reply)
    try:
        parsed: T = _adapter(kind).validate_json(reply.text)
    except ValidationError as error:
        shortened = "it was cut at max_tokens" if not reply.complete else f"{error.error_count()} faults"
        raise InvalidReply(f"{model.name} gave no valid {kind.__name__}: {shortened}.") from error
    for name, values in choices.items():
        value: str | Sequence[str] = getattr(parsed, name)
        if not {value} <= set(values) if isinstance(value, str) else not set(value) <= set(values):
            raise InvalidReply(f"{model.name} gave no valid {kind.__name__}: {name} is none of those allowed.")
    return parsed
