"""Decide how much of a conversation, or of some texts, fits into the context of a model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from core.model.errors import PromptTooLong
from core.model.language_model import ChatMessage
from core.ports import LanguageModel

MESSAGE_TOKENS = 16  # overhead of a chat template per message
SEPARATOR_TOKENS = 2  # overhead of a separator between turns


async def fitting_turns(
    model: LanguageModel, instructions: Sequence[ChatMessage], max_tokens: int, history: Sequence[str]
) -> int:
    """Return how many of the latest turns of `history`, oldest first, fit into the prompt without a gap.

    `instructions` are the messages without the history; `max_tokens` are reserved for the reply. The turns are given as the
    prompt shows them. Lengths are counted by the model's tokenizer, turn by turn, which is an upper bound for the whole.

    Raises PromptTooLong if the instructions alone do not fit, and ModelUnavailable.
    """
    texts = [*(message.text for message in instructions), *history]
    context, *lengths = await asyncio.gather(model.context_tokens(), *(model.count_tokens(text) for text in texts))
    fixed = sum(lengths[: len(instructions)]) + MESSAGE_TOKENS * len(instructions)
    room = context - max_tokens - fixed
    if room < 0:
        raise PromptTooLong(
            f"{fixed} tokens of prompt and {max_tokens} of reply do not fit into the {context} of {model.name}: "
            "start the server with a larger context."
        )
    count = 0
    for length in reversed(lengths[len(instructions) :]):
        room -= length + SEPARATOR_TOKENS
        if room < 0:
            break
        count += 1
    return count


async def fitting_texts(
    model: LanguageModel, instructions: Sequence[ChatMessage], max_tokens: int, texts: Sequence[str]
) -> list[int]:
    """Return the places of the texts, best first, that fit beside the prompt without them and the reply.

    A text that does not fit is left out, and shorter ones after it may still fit. Raises PromptTooLong if none of them
    fits, and ModelUnavailable.
    """
    counted = [*(message.text for message in instructions), *texts]
    context, *lengths = await asyncio.gather(model.context_tokens(), *(model.count_tokens(text) for text in counted))
    room = context - max_tokens - sum(lengths[: len(instructions)]) - MESSAGE_TOKENS * len(instructions)
    kept: list[int] = []
    for place, length in enumerate(lengths[len(instructions) :]):
        if length + MESSAGE_TOKENS <= room:
            kept.append(place)
            room -= length + MESSAGE_TOKENS
    if texts and not kept:
        raise PromptTooLong(f"No text fits into the {context} tokens of {model.name}: start it with a larger context.")
    return kept
