from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.errors import ModelUnavailable, PromptTooLong
from core.model.language_model import ChatMessage, Role
from core.model_calls.choice import MESSAGE_TOKENS, fitting_texts
from tests.fakes.language_model import ScriptedModel

INSTRUCTIONS = (ChatMessage(Role.SYSTEM, "answer with citations"),)  # 3 tokens
FIXED = 3 + MESSAGE_TOKENS


def words(count: int) -> str:
    return " ".join(["word"] * count)


def model_with_room(tokens: int) -> ScriptedModel:
    """A model with this many tokens left beside the instructions and the reply."""
    return ScriptedModel(context=FIXED + 10 + tokens)


async def test_a_text_that_does_not_fit_is_left_out_and_a_shorter_one_after_it_is_kept() -> None:
    texts = [words(3), words(500), words(2)]
    assert await fitting_texts(model_with_room(2 * MESSAGE_TOKENS + 5), INSTRUCTIONS, 10, texts) == [0, 2]


async def test_instructions_that_leave_no_room_are_refused() -> None:
    with pytest.raises(PromptTooLong, match="No text fits"):
        await fitting_texts(model_with_room(-1), INSTRUCTIONS, 10, ["hi"])


async def test_a_model_that_is_down_says_so() -> None:
    class Down(ScriptedModel):
        async def count_tokens(self, text: str) -> int:
            raise ModelUnavailable("down")

    with pytest.raises(ModelUnavailable):
        await fitting_texts(Down(), INSTRUCTIONS, 10, ["hi"])


@given(st.lists(st.integers(0, 30), max_size=8), st.integers(0, 200))
async def test_what_is_kept_fits_and_what_is_left_out_would_not(lengths: list[int], room: int) -> None:
    texts = [words(length) for length in lengths]
    try:
        kept = await fitting_texts(model_with_room(room), INSTRUCTIONS, 10, texts)
    except PromptTooLong:
        kept = []
    left = room - sum(lengths[place] + MESSAGE_TOKENS for place in kept)
    assert left >= 0
    assert all(lengths[place] + MESSAGE_TOKENS > left for place in range(len(lengths)) if place not in kept)
