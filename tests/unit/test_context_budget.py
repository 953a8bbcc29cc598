from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.errors import ModelUnavailable, PromptTooLong
from core.model.language_model import ChatMessage, Role
from core.model_calls.context_budget import MESSAGE_TOKENS, SEPARATOR_TOKENS, fit_context
from tests.fakes.language_model import ScriptedModel

INSTRUCTIONS = (ChatMessage(Role.SYSTEM, "answer with citations"),)  # 3 tokens
FIXED = 3 + MESSAGE_TOKENS


def words(count: int) -> str:
    return " ".join(["word"] * count)


def model_with_room(tokens: int, max_tokens: int = 10) -> ScriptedModel:
    """A model with this many tokens left beside the instructions and the reply."""
    return ScriptedModel(context=FIXED + max_tokens + tokens)


async def test_evidence_goes_before_history() -> None:
    fitted = await fit_context(
        model_with_room(2 * (5 + SEPARATOR_TOKENS)),
        instructions=INSTRUCTIONS,
        max_tokens=10,
        evidence=[words(5), words(5)],
        history=[words(1)],
    )
    assert (fitted.evidence, fitted.history) == ((0, 1), ())
    assert (fitted.evidence_left_out, fitted.history_left_out) == (0, 1)


async def test_a_piece_that_does_not_fit_is_left_out_whole_and_a_smaller_one_after_it_is_kept() -> None:
    fitted = await fit_context(
        model_with_room(20), instructions=INSTRUCTIONS, max_tokens=10, evidence=[words(8), words(30), words(5)]
    )
    assert fitted.evidence == (0, 2)
    assert fitted.evidence_left_out == 1


async def test_the_latest_turns_are_kept_without_a_gap() -> None:
    fitted = await fit_context(
        model_with_room(12), instructions=INSTRUCTIONS, max_tokens=10, history=[words(1), words(50), words(2), words(3)]
    )
    assert fitted.history == (2, 3)
    assert fitted.history_left_out == 2


async def test_a_prompt_whose_first_evidence_does_not_fit_is_refused() -> None:
    with pytest.raises(PromptTooLong, match="do not fit"):
        await fit_context(model_with_room(20), instructions=INSTRUCTIONS, max_tokens=10, evidence=[words(30), words(1)])


async def test_instructions_that_do_not_fit_are_refused_even_without_evidence() -> None:
    with pytest.raises(PromptTooLong):
        await fit_context(model_with_room(-1), instructions=INSTRUCTIONS, max_tokens=10)


async def test_a_model_that_cannot_be_asked_is_said_to_be_unavailable() -> None:
    class Silent(ScriptedModel):
        async def count_tokens(self, text: str) -> int:
            raise ModelUnavailable("The model does not answer.")

    with pytest.raises(ModelUnavailable):
        await fit_context(Silent(), instructions=INSTRUCTIONS, max_tokens=10)


@given(
    context=st.integers(40, 200),
    max_tokens=st.integers(1, 60),
    evidence=st.lists(st.integers(0, 40), max_size=12),
    history=st.lists(st.integers(0, 40), max_size=12),
)
async def test_what_was_chosen_fits_and_nothing_more_would(
    context: int, max_tokens: int, evidence: list[int], history: list[int]
) -> None:
    model = ScriptedModel(context=context)
    pieces, turns = [words(count) for count in evidence], [words(count) for count in history]
    try:
        fitted = await fit_context(
            model, instructions=INSTRUCTIONS, max_tokens=max_tokens, evidence=pieces, history=turns
        )
    except PromptTooLong:
        first = evidence[0] + SEPARATOR_TOKENS if evidence else 0
        assert FIXED + first + max_tokens > context
        return
    prompt = " ".join(
        [INSTRUCTIONS[0].text, *(pieces[i] for i in fitted.evidence), *(turns[i] for i in fitted.history)]
    )
    assert await model.count_tokens(prompt) <= fitted.prompt_tokens <= context - max_tokens
    assert len(fitted.evidence) + fitted.evidence_left_out == len(evidence)
    assert len(fitted.history) + fitted.history_left_out == len(history)
    assert not evidence or 0 in fitted.evidence
    assert list(fitted.history) == list(range(len(history)))[len(history) - len(fitted.history) :]
    left = context - max_tokens - fitted.prompt_tokens
    assert all(evidence[i] + SEPARATOR_TOKENS > left for i in range(len(evidence)) if i not in fitted.evidence)
    assert not fitted.history_left_out or history[fitted.history_left_out - 1] + SEPARATOR_TOKENS > left
