"""The budget of the model's context: decides which content fits into a prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from core.model.errors import PromptTooLong
from core.model.language_model import ChatMessage
from core.ports import LanguageModel

MESSAGE_TOKENS = 16  # overhead of a chat template per message
SEPARATOR_TOKENS = 2  # overhead of a separator between pieces


@dataclass(frozen=True, slots=True)
class FittedContext:
    """The content that fits: ascending positions in the offered evidence and history.

    `prompt_tokens` is an upper bound of the prompt's length. `evidence_left_out` and `history_left_out` are the numbers
    of pieces and turns that did not fit.
    """

    evidence: tuple[int, ...]
    history: tuple[int, ...]
    prompt_tokens: int
    evidence_left_out: int
    history_left_out: int


async def fit_context(
    model: LanguageModel,
    *,
    instructions: Sequence[ChatMessage],
    max_tokens: int,
    evidence: Sequence[str] = (),
    history: Sequence[str] = (),
) -> FittedContext:
    """Choose whole pieces of evidence, then turns of the conversation, that fit into the prompt.

    `instructions` are the messages without evidence and history; `max_tokens` are reserved for the reply. `evidence`
    (best first) and `history` (oldest first) are given as the prompt shows them, labels included. Evidence that does
    not fit is skipped and smaller pieces after it are tried; of the history, the latest turns without a gap are kept.
    Lengths are counted by the model's tokenizer, piece by piece, which is an upper bound for the whole.

    Raises PromptTooLong if the instructions and the first piece do not fit, and ModelUnavailable.
    """
    texts = [*(message.text for message in instructions), *evidence, *history]
    context, *lengths = await asyncio.gather(model.context_tokens(), *(model.count_tokens(text) for text in texts))
    fixed = sum(lengths[: len(instructions)]) + MESSAGE_TOKENS * len(instructions)
    evidence_costs = [length + SEPARATOR_TOKENS for length in lengths[len(instructions) :][: len(evidence)]]
    history_costs = [length + SEPARATOR_TOKENS for length in lengths[len(instructions) + len(evidence) :]]
    room = context - max_tokens - fixed
    if room < (evidence_costs[0] if evidence_costs else 0):
        needed = fixed + sum(evidence_costs[:1])
        raise PromptTooLong(
            f"{needed} tokens of prompt and {max_tokens} of reply do not fit into the {context} of {model.name}: "
            "start the server with a larger context."
        )
    kept_evidence, room_left = _whole_pieces(evidence_costs, room)
    kept_history, room_left = _latest(history_costs, room_left)
    return FittedContext(
        evidence=kept_evidence,
        history=kept_history,
        prompt_tokens=fixed + room - room_left,
        evidence_left_out=len(evidence) - len(kept_evidence),
        history_left_out=len(history) - len(kept_history),
    )


def _whole_pieces(costs: Sequence[int], room: int) -> tuple[tuple[int, ...], int]:
    kept: list[int] = []
    for position, cost in enumerate(costs):
        if cost <= room:
            kept.append(position)
            room -= cost
    return tuple(kept), room


def _latest(costs: Sequence[int], room: int) -> tuple[tuple[int, ...], int]:
    first = len(costs)
    while first and costs[first - 1] <= room:
        first -= 1
        room -= costs[first]
    return tuple(range(first, len(costs))), room
