"""A language model's verdicts on statements, all by one reply: does what they cite say just that?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from core.model.errors import InvalidReply
from core.model.language_model import ChatMessage, ModelRequest
from core.model_calls.constrained_reply import label_schema
from core.ports import LanguageModel

VERDICT_TOKENS = 24  # room for a verdict


class SourceVerdict(StrEnum):
    """The relation of a statement to what it cites. The value is the word that a model gives."""

    SAID = "said"
    PARTLY = "partly"
    CHANGED = "changed"
    ABSENT = "absent"
    LEAD = "lead"


async def judged(
    messages: Sequence[ChatMessage], count: int, model: LanguageModel, request: ModelRequest
) -> list[SourceVerdict]:
    """Return the model's verdict on each of the `count` numbered statements of a prompt.

    `request` gives requester, urgency and deadline. Raises InvalidReply, and the errors of the port.
    """
    numbers = [str(number) for number in range(1, count + 1)]
    schema = {
        "type": "object",
        "properties": {number: label_schema(list(SourceVerdict)) for number in numbers},
        "required": numbers,
        "additionalProperties": False,
    }
    asking = replace(request, messages=tuple(messages), schema=schema, max_tokens=VERDICT_TOKENS * count)
    reply = await model.generate(asking)
    try:
        return [SourceVerdict(json.loads(reply.text)[number]) for number in numbers]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidReply(f"{model.name} gave no verdict on each of {count} statements.") from error
