"""Calls of a language model: what fits into its context, its reply as a typed value, and its choice among candidates."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from core.model.errors import InvalidReply, PromptTooLong
from core.model.language_model import ChatMessage, ModelRequest
from core.ports import LanguageModel

NONE = "none of them"  # in place of the name of a candidate
NAME_TOKENS = 32  # room for a name
PROVEN = 0.75  # share of right answers from which those with strong evidence need no hedge


class Use(StrEnum):
    """The uses of a language model. The value is its name in plumbline.yaml."""

    ANSWERS = "answers"
    CAUSES = "causes"
    OWNERS = "owners"


class Trust(StrEnum):
    """The trust of the operator in a model, for one use."""

    MEASURED = "measured"  # as far as its exam proves
    ALWAYS = "always"  # used without an exam
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Skill:
    """The skill of a model: the shares that its exam proves, in [0, 1], or that the operator vouches for.

    `right` is that of right choices, `writes` that of right answers in its own words, `tools` that of right calls of tools,
    `judges` that of right verdicts on sentences; 0 if it is not used for that. With `always`, it is also asked where the evidence engine is certain.
    """

    right: float
    writes: float = 0.0
    tools: float = 0.0
    judges: float = 0.0
    always: bool = False


VOUCHED = Skill(0.9, 0.9, 0.9, 0.9, always=True)
"""The skill of a model that the operator trusts: as of one that is right in nine of ten cases."""


async def choose(
    model: LanguageModel, request: ModelRequest, messages: tuple[ChatMessage, ...], names: Sequence[str]
) -> list[float]:
    """Return the probability of each of `names`, in their order, and of NONE; they sum to 1.

    `request` gives requester, urgency and deadline; its messages are replaced. Raises the errors of the port.
    """
    distribution = await model.expect(replace(request, messages=messages, max_tokens=NAME_TOKENS), [*names, NONE])
    return [distribution[name] for name in (*names, NONE)]


def weighed(distribution: Sequence[float], before: Sequence[float], right: float) -> list[float]:
    """Return the probability of each candidate and of none, by Bayes' rule; they sum to 1.

    `distribution` is the model's distribution, which sums to 1; `before` are the probabilities without the model. A model that
    is right in the share `right` of its choices is assumed to choose at random otherwise, so that a model that always
    chooses at random changes nothing.
    """
    odds = [
        prior * (right * share + (1.0 - right) / len(distribution))
        for prior, share in zip(before, distribution, strict=True)
    ]
    total = math.fsum(odds) or 1.0
    return [each / total for each in odds]


MESSAGE_TOKENS = 16  # overhead of a chat template per message


async def fitting_texts(
    model: LanguageModel,
    instructions: Sequence[ChatMessage],
    max_tokens: int,
    texts: Sequence[str],
    most: float = math.inf,
) -> list[int]:
    """Return the places of the texts, best first, that fit beside the prompt without them and the reply.

    Beyond the first, they have `most` tokens together. A text that does not fit is left out, and shorter ones after it may
    still fit. Raises PromptTooLong if none of them fits, and ModelUnavailable.
    """
    parts = [*(message.text for message in instructions), *texts]
    context, *lengths = await asyncio.gather(model.context_tokens(), *(model.count_tokens(text) for text in parts))
    room = context - max_tokens - sum(lengths[: len(instructions)]) - MESSAGE_TOKENS * len(instructions)
    kept: list[int] = []
    for place, length in enumerate(lengths[len(instructions) :]):
        if length + MESSAGE_TOKENS <= room:
            kept.append(place)
            room = min(room, most) - length - MESSAGE_TOKENS
    if texts and not kept:
        raise PromptTooLong(f"No text fits into the context of {model.name}: start it with a larger one.")
    return kept


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


async def structured(
    model: LanguageModel,
    request: ModelRequest,
    kind: type[T],
    choices: Choices = ANY,
) -> T:
    """Ask for a reply of type `kind` whose fields have the allowed values, and return it. The request's schema is replaced.

    Raises InvalidReply if the reply was truncated or is not valid, and the errors of the port.
    """
    reply = await model.generate(replace(request, schema=schema_of(kind, choices)))
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
