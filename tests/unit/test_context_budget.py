from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.errors import ModelUnavailable, PromptTooLong
from core.model.language_model import ChatMessage, Role
from core.model_calls.choice import MESSAGE_TOKENS, SEPARATOR_TOKENS, fitting_turns
from tests.fakes.language_model import ScriptedModel

INSTRUCTIONS = (ChatMessage(Role.SYSTEM, "answer with citations"),)  # 3 tokens
FIXED = 3 + MESSAGE_TOKENS


def words(count: int) -> str:
    return " ".join(["word"] * count)


def model_with_room(tokens: int) -> ScriptedModel:
    """A model with this many tokens left beside the instructions and the reply."""
    return ScriptedModel(context=FIXED + 10 + tokens)


async def test_the_latest_turns_are_kept_without_a_gap() -> None:
    history = [words(1), words(50), words(2), words(3)]
    assert await fitting_turns(model_with_room(12), INSTRUCTIONS, 10, history) == 2


async def test_instructions_that_do_not_fit_are_refused() -> None:
    with pytest.raises(PromptTooLong, match="do not fit"):
        await fitting_turns(model_with_room(-1), INSTRUCTIONS, 10, ())


async def test_a_model_that_is_down_says_so() -> None:
    class Down(ScriptedModel):
        async def count_tokens(self, text: str) -> int:
            raise ModelUnavailable("down")

    with pytest.raises(ModelUnavailable):
        await fitting_turns(Down(), INSTRUCTIONS, 10, ["hi"])


@given(st.lists(st.integers(0, 30), max_size=8), st.integers(0, 200))
async def test_what_is_kept_fits_and_one_turn_more_would_not(lengths: list[int], room: int) -> None:
    costs = [length + SEPARATOR_TOKENS for length in lengths]
    kept = await fitting_turns(model_with_room(room), INSTRUCTIONS, 10, [words(length) for length in lengths])
    assert sum(costs[len(costs) - kept :]) <= room or not kept
    assert kept == len(costs) or sum(costs[len(costs) - kept - 1 :]) > room
